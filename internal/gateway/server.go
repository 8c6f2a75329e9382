// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// Config has the times and bounds of a server. The zero value means the defaults.
type Config struct {
	// AnswerWithin is how long a request that does not stream waits for its reply before the client is asked to come back.
	// Defaults to 9 minutes, since the official clients give up after 10.
	AnswerWithin time.Duration
	// RetryAfter is the time after which a client is asked to come back. Defaults to 5 s.
	RetryAfter time.Duration
	// KeepAlive is the time between the events that keep a stream alive. Defaults to 10 s.
	KeepAlive time.Duration
	// BodyWithin is how long the body of a request may take. Defaults to 1 minute.
	BodyWithin time.Duration
	// Open is how many requests of an episode may be open at once. Defaults to 256.
	Open int
	// Limits bound requests. Defaults to dialect.DefaultLimits.
	Limits dialect.Limits
	// Now is the clock of replies. Defaults to time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.AnswerWithin = cmp.Or(c.AnswerWithin, 9*time.Minute)
	c.RetryAfter = cmp.Or(c.RetryAfter, 5*time.Second)
	c.KeepAlive = cmp.Or(c.KeepAlive, 10*time.Second)
	c.BodyWithin = cmp.Or(c.BodyWithin, time.Minute)
	c.Open = cmp.Or(c.Open, 256)
	c.Limits = cmp.Or(c.Limits, dialect.DefaultLimits())
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Server serves episodes at one address. It is safe for concurrent use.
type Server struct {
	config Config
	http   *http.Server
	// address is the beginning of all base URLs.
	address string
	// key signs blocks of reasoning.
	key []byte

	mu       sync.Mutex
	episodes map[string]*Episode
	// told are the options that were logged.
	told map[string]bool
}

// New returns a server that does not listen yet. The address, which has no path, is the address at which agents reach
// it.
func New(address string, config Config) *Server {
	s := &Server{config: config.withDefaults(), address: strings.TrimSuffix(address, "/"), key: randomBytes(),
		episodes: map[string]*Episode{}, told: map[string]bool{}}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: s.config.BodyWithin, IdleTimeout: 10 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Listen returns a server at a free port of the loopback interface. The caller closes it.
func Listen(config Config) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It does not wait.
	if err != nil {
		return nil, err
	}
	s := New("http://"+listener.Addr().String(), config)
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.config.Logger.Error("the gateway of agents has ended", "err", err)
		}
	}()
	return s, nil
}

// ServeConn serves a connection that does not come from a listener of the server. It does not wait for the end of the
// connection, and the server closes it.
func (s *Server) ServeConn(conn net.Conn) {
	if errors.Is(s.http.Serve(&single{conn: conn}), http.ErrServerClosed) {
		_ = conn.Close()
	}
}

// single is a listener that accepts one connection.
type single struct{ conn net.Conn }

// Accept implements net.Listener.
func (s *single) Accept() (net.Conn, error) {
	conn := s.conn
	if s.conn = nil; conn == nil {
		return nil, io.EOF
	}
	return conn, nil
}

// Close implements net.Listener. The connection stays open.
func (*single) Close() error { return nil }

// Addr implements net.Listener.
func (*single) Addr() net.Addr { return &net.TCPAddr{} }

// HostPort returns the address at which the server is reached, without the scheme.
func (s *Server) HostPort() string {
	_, hostPort, _ := strings.Cut(s.address, "://")
	return hostPort
}

// Close ends all connections.
func (s *Server) Close() { _ = s.http.Close() } // The only possible error is the listener's.

func randomBytes() []byte {
	b := make([]byte, 24)
	rand.Read(b)
	return b
}

func randomName() string { return hex.EncodeToString(randomBytes()) }

// sign returns the signature of a block of reasoning.
func (s *Server) sign(thinking string) string {
	sum := hmac.New(sha256.New, s.key)
	sum.Write([]byte(thinking))
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

func (s *Server) verify(thinking, signature string) bool {
	return hmac.Equal([]byte(s.sign(thinking)), []byte(signature))
}

// Open begins an episode, whose requests end with ctx. The caller closes it.
func (s *Server) Open(ctx context.Context, policy environment.AgentPolicy, options Options) *Episode {
	e := newEpisode(ctx, s, policy, options)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.episodes[e.id] = e
	return e
}

func (s *Server) forget(e *Episode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.episodes, e.id)
}

// tell logs once that an option is not followed.
func (s *Server) tell(option, what string) {
	s.mu.Lock()
	known := s.told[option]
	s.told[option] = true
	s.mu.Unlock()
	if !known {
		s.config.Logger.Warn(what, "option", option)
	}
}

// endpoints are the paths with a codec.
var endpoints = map[string]dialect.Endpoint{
	"chat/completions":      dialect.ChatCompletions,
	"completions":           dialect.Completions,
	"responses":             dialect.Responses,
	"messages":              dialect.Messages,
	"messages/count_tokens": dialect.CountTokens,
}

// ServeHTTP implements http.Handler. The path of a URL has the ID of an episode, with or without its token; then v1,
// which may be missing; and then the path of the service.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	path = strings.Trim(strings.TrimPrefix(path, "v1/"), "/")
	endpoint, known := endpoints[path]
	words := dialect.OpenAI
	if r.Header.Get("Anthropic-Version") != "" {
		words = dialect.Anthropic
	}
	if known {
		words = endpoint.Dialect()
	}
	e := s.episodeOf(id, r)
	switch {
	case e == nil:
		fail(w, words, &dialect.Error{Kind: dialect.Authentication,
			Message: "The URL and the token are not those of an episode in progress."})
	case known && r.Method == http.MethodPost:
		e.serve(w, r, endpoint)
	case path == "models" && r.Method == http.MethodGet:
		write(w, dialect.EncodeModels(words, e.models()))
	case strings.HasPrefix(path, "models/") && r.Method == http.MethodGet:
		e.serveModel(w, words, strings.TrimPrefix(path, "models/"))
	default:
		fail(w, words, &dialect.Error{Kind: dialect.NotFound, Code: "unknown_url",
			Message: "The gateway does not have " + r.Method + " /v1/" + quotePath(path) + "."})
	}
}

// quotePath shortens a path for use in a message.
func quotePath(path string) string {
	const longest = 100
	if len(path) > longest {
		path = path[:longest]
	}
	return strings.ToValidUTF8(path, "")
}

// episodeOf returns the episode of a URL, if the request has its token.
func (s *Server) episodeOf(id string, r *http.Request) *Episode {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key := r.Header.Get("X-Api-Key"); key != "" {
		token = key
	}
	if before, inURL, ok := strings.Cut(id, "."); ok {
		id, token = before, inURL
	}
	s.mu.Lock()
	e := s.episodes[id]
	s.mu.Unlock()
	if e == nil || !hmac.Equal([]byte(e.token), []byte(token)) {
		return nil
	}
	return e
}

func write(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// fail answers a request with an error.
func fail(w http.ResponseWriter, words dialect.Dialect, e *dialect.Error) {
	id := "req_" + hex.EncodeToString(randomBytes()[:12])
	for name, values := range e.Header(words) {
		w.Header()[name] = values
	}
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("Request-Id", id)
	w.WriteHeader(e.Status(words))
	w.Write(e.Body(words, id))
}

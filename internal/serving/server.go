// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// Catalog has the models of a server by their names.
type Catalog interface {
	// Names returns the names for clients, the most usual first.
	Names() []string
	// Model returns the model of a name. The error is an *UnknownModelError if there is no such model.
	Model(ctx context.Context, name string) (Model, error)
}

// UnknownModelError reports a name that no model has.
type UnknownModelError struct{ Message string }

// Error implements error.
func (e *UnknownModelError) Error() string { return "choosing a model: " + e.Message }

// Defaults are the settings of requests that do not set them.
type Defaults struct {
	Temperature, TopP float64
	TopK, MaxTokens   int
}

// Config is the configuration of a Server.
type Config struct {
	Catalog  Catalog
	Defaults Defaults
	// Token is the token that clients have to send, or to have in the path; empty if they need none.
	Token string
	// Remote permits requests that do not come from a program of this machine.
	Remote      bool
	Unsupported dialect.Policy
	// Limits bound requests. Defaults to dialect.DefaultLimits.
	Limits dialect.Limits
	// Open bounds the requests that are answered at once. Defaults to 64.
	Open int
	// AnswerWithin is how long a request may take. Defaults to 9 minutes, because the official clients give up after 10.
	AnswerWithin time.Duration
	// KeepAlive is the time between the events that keep a stream alive. Defaults to 10 s.
	KeepAlive time.Duration
	// Now is the clock of replies. Defaults to time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// Server is an http.Handler that answers in the dialects. It is safe for concurrent use.
type Server struct {
	config Config
	open   chan struct{}
	key    []byte

	mu        sync.Mutex
	responses map[string]*response
	kept      []string
	// told are the options that were logged by tell.
	told map[string]bool
}

// response is a conversation that a later request may continue by its ID.
type response struct {
	previous *response
	messages []chat.Message
}

func (r *response) conversation() []chat.Message {
	if r == nil {
		return nil
	}
	return append(r.previous.conversation(), r.messages...)
}

// NewServer returns a server.
func NewServer(config Config) *Server {
	config.Open = cmp.Or(config.Open, 64)
	config.AnswerWithin = cmp.Or(config.AnswerWithin, 9*time.Minute)
	config.KeepAlive = cmp.Or(config.KeepAlive, 10*time.Second)
	config.Limits = cmp.Or(config.Limits, dialect.DefaultLimits())
	config.Logger = cmp.Or(config.Logger, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Server{config: config, open: make(chan struct{}, config.Open), key: randomBytes(),
		responses: map[string]*response{}, told: map[string]bool{}}
}

func randomBytes() []byte {
	b := make([]byte, 24)
	rand.Read(b)
	return b
}

// RandomToken returns a token that cannot be guessed.
func RandomToken() string { return hex.EncodeToString(randomBytes()) }

// sign returns the signature of a block of reasoning. It is not checked: clients may send any reasoning.
func (s *Server) sign(thinking string) string {
	sum := hmac.New(sha256.New, s.key)
	sum.Write([]byte(thinking))
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// endpoints are the endpoints with a codec, by path.
var endpoints = map[string]dialect.Endpoint{
	"chat/completions":      dialect.ChatCompletions,
	"completions":           dialect.Completions,
	"responses":             dialect.Responses,
	"messages":              dialect.Messages,
	"messages/count_tokens": dialect.CountTokens,
}

// ServeHTTP implements http.Handler. A path may begin with the token, then with v1; the rest is the path at the
// service.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, authorised := s.authorise(r)
	path = strings.Trim(strings.TrimPrefix(path, "v1/"), "/")
	endpoint, known := endpoints[path]
	words := dialect.OpenAI
	if r.Header.Get("Anthropic-Version") != "" {
		words = dialect.Anthropic
	}
	if known {
		words = endpoint.Dialect()
	}
	name, oneModel := strings.CutPrefix(path, "models/")
	switch {
	case !s.isLocal(r):
		fail(w, words, &dialect.Error{Kind: dialect.Permission, Message: "Pages of other sites may not ask this server."})
	case !authorised:
		fail(w, words, &dialect.Error{Kind: dialect.Authentication, Message: "The token is not this server's token."})
	case known && r.Method == http.MethodPost:
		s.answer(w, r, endpoint)
	case path == "models" && r.Method == http.MethodGet:
		write(w, dialect.EncodeModels(words, s.models()))
	case oneModel && r.Method == http.MethodGet:
		s.answerModel(w, r, words, name)
	default:
		fail(w, words, &dialect.Error{Kind: dialect.NotFound, Code: "unknown_url",
			Message: "The server does not have " + r.Method + " /v1/" + cutText(path) + "."})
	}
}

// cutText bounds a text of a request for a message.
func cutText(text string) string {
	const longest = 100
	if len(text) > longest {
		text = text[:longest]
	}
	return strings.ToValidUTF8(text, "")
}

// authorise returns the path without the token, and whether the request has the token.
func (s *Server) authorise(r *http.Request) (path string, ok bool) {
	path = strings.TrimPrefix(r.URL.Path, "/")
	if s.config.Token == "" {
		return path, true
	}
	same := func(token string) bool { return hmac.Equal([]byte(s.config.Token), []byte(token)) }
	if first, rest, _ := strings.Cut(path, "/"); same(first) {
		return rest, true
	}
	return path, same(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) || same(r.Header.Get("X-Api-Key"))
}

// isLocal reports whether a request may come from a program of this machine. It rejects the requests that a page of
// another site makes in a browser, whatever address the name of that site has.
func (s *Server) isLocal(r *http.Request) bool {
	if s.config.Remote {
		return true
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || !isLoopback(from.Hostname()) {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return isLoopback(strings.Trim(host, "[]"))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Server) models() []dialect.Model {
	var models []dialect.Model
	for _, name := range s.config.Catalog.Names() {
		models = append(models, dialect.Model{Name: name, Created: s.config.Now()})
	}
	return models
}

func (s *Server) answerModel(w http.ResponseWriter, r *http.Request, words dialect.Dialect, name string) {
	if _, err := s.config.Catalog.Model(r.Context(), name); err != nil {
		fail(w, words, errorOf(err))
		return
	}
	write(w, dialect.EncodeModel(words, dialect.Model{Name: name, Created: s.config.Now()}))
}

// tell logs an option of requests that is not followed, once.
func (s *Server) tell(option string) {
	s.mu.Lock()
	known := s.told[option]
	s.told[option] = true
	s.mu.Unlock()
	if !known {
		s.config.Logger.Warn("requests have an option that is not followed", "option", option)
	}
}

// mostKept bounds the responses that later requests may continue.
const mostKept = 1000

// keep remembers a response for requests that continue it.
func (s *Server) keep(id string, made *response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses[id] = made
	if s.kept = append(s.kept, id); len(s.kept) > mostKept {
		delete(s.responses, s.kept[0])
		s.kept = s.kept[1:]
	}
}

func (s *Server) responseOf(id string) (*response, *dialect.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.responses[id]; id == "" || found != nil {
		return found, nil
	}
	return nil, &dialect.Error{Kind: dialect.InvalidRequest, Code: "previous_response_not_found",
		Param: "previous_response_id", Message: "The response is not one of the newest of this server."}
}

func write(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// fail answers with an error.
func fail(w http.ResponseWriter, words dialect.Dialect, e *dialect.Error) {
	id := "req_" + hex.EncodeToString(randomBytes()[:12])
	for name, values := range e.Header(words) {
		w.Header()[name] = values
	}
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("Request-Id", id)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status(words))
	w.Write(e.Body(words, id))
}

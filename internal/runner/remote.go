// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// maxRemote limits the callers that are connected over TCP at once.
const maxRemote = 512

// maxStrangers limits the connections that come from the runner's own machine, where its programs are, and have not
// sent the token yet.
const maxStrangers = maxRemote / 2

// unanswered is how long data sent to a caller may stay unacknowledged.
const unanswered = 30 * time.Second

// silence closes connections to callers on machines that no longer answer.
var silence = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// Remote has the settings of a runner that serves callers over TCP with TLS. Each caller sends a token in its hello.
type Remote struct {
	// Address is the address at which the runner listens, as net.Listen takes it.
	Address string
	// Certificate is the runner's certificate.
	Certificate tls.Certificate
	// TokenSHA256 is the digest of the token. The runner does not know the token, so that no program can learn it.
	TokenSHA256 [sha256.Size]byte
	// TokenFile is a file that takes the place of TokenSHA256. It is empty until a run claims the pod of the runner, and
	// then has the digest in hex digits. The runner admits no caller before that. It keeps the first digest until it
	// ends, so that a pod never has callers of two runs.
	TokenFile string

	mu      sync.Mutex
	claimed bool // TokenSHA256 was read from the file
}

// ParseTokenSHA256 parses the digest of a token, in hex digits.
func ParseTokenSHA256(text string) (digest [sha256.Size]byte, err error) {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != len(digest) {
		return digest, errors.New("it is no SHA-256 in hex digits")
	}
	copy(digest[:], decoded)
	return digest, nil
}

// tokenSHA256 returns the digest of the token that callers have to show, or why there is none yet.
func (r *Remote) tokenSHA256() ([sha256.Size]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.TokenFile == "" || r.claimed {
		return r.TokenSHA256, nil
	}
	text, err := os.ReadFile(r.TokenFile)
	if err != nil {
		return r.TokenSHA256, fmt.Errorf("reading the token's digest: %w", err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return r.TokenSHA256, errors.New("no run has claimed the pod")
	}
	digest, err := ParseTokenSHA256(strings.TrimSpace(string(text)))
	if err != nil {
		return r.TokenSHA256, fmt.Errorf("reading the token's digest in %s: %w", r.TokenFile, err)
	}
	r.TokenSHA256, r.claimed = digest, true
	return digest, nil
}

func (r *Remote) listen(ctx context.Context) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: silence, Control: func(_, _ string, conn syscall.RawConn) error {
		var err error
		controlErr := conn.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
		})
		return errors.Join(err, controlErr)
	}}
	listener, err := config.Listen(ctx, "tcp", r.Address)
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", r.Address, err)
	}
	return tls.NewListener(protocol.WholeListener{Listener: listener}, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.Certificate},
	}), nil
}

// authorize returns an error if a token does not have the runner's digest. It compares in constant time.
func (r *Remote) authorize(token string) *protocol.Error {
	want, err := r.tokenSHA256()
	if err != nil {
		return &protocol.Error{Code: protocol.CodeUnauthorized, Message: "The runner has no token yet: " + err.Error() + "."}
	}
	digest := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(digest[:], want[:]) != 1 {
		return &protocol.Error{Code: protocol.CodeUnauthorized, Message: "The token is not the token of the runner."}
	}
	return nil
}

// admitRemote serves a connection over TCP. It accepts no other message before a hello with the token.
func (s *Server) admitRemote(ctx context.Context, conn net.Conn) {
	c := newConnection(s, conn)
	if isInside(conn) && !s.strangers.add(c) {
		s.Log.Warn("A connection from the runner's own pod was refused. There are too many.", "limit", maxStrangers)
		_ = conn.Close()
		return
	}
	c.caller = s.shared.newCaller(c)
	s.admit(ctx, c, maxRemote)
}

// isInside reports whether a connection comes from the runner's own machine, by any of the addresses that lead to it.
func isInside(conn net.Conn) bool {
	here, isHere := conn.LocalAddr().(*net.TCPAddr)
	there, isThere := conn.RemoteAddr().(*net.TCPAddr)
	return isHere && isThere && (there.IP.IsLoopback() || here.IP.Equal(there.IP))
}

// strangers are the connections from the runner's own machine without a token.
type strangers struct {
	mu    sync.Mutex
	known map[*connection]bool
}

// add adds a connection, unless there are too many.
func (s *strangers) add(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxStrangers {
		return false
	}
	if s.known == nil {
		s.known = map[*connection]bool{}
	}
	s.known[c] = true
	return true
}

func (s *strangers) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, c)
}

// identify checks the token of a hello over TCP, and permits longer lines afterwards. The kubelet, which probes the
// runner by a connection that it closes at once, sends no hello.
func (c *connection) identify(reader *protocol.Reader, hello *protocol.Message) *protocol.Error {
	if c.caller == nil {
		return nil
	}
	if refused := c.server.Remote.authorize(hello.Token); refused != nil {
		return refused
	}
	c.server.strangers.remove(c)
	reader.Bound(protocol.DefaultLines)
	return nil
}

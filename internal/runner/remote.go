// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// maxRemote is how many callers are connected over TCP at once.
const maxRemote = 512

// unanswered is how long a caller may acknowledge nothing that it is sent.
const unanswered = 30 * time.Second

// silence finds callers whose machine is gone.
var silence = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// Remote is where a runner serves callers over TCP, by TLS. Each shows a token in its hello.
type Remote struct {
	// Address is where the runner listens, as net.Listen takes it.
	Address string
	// Certificate is the runner's certificate.
	Certificate tls.Certificate
	// TokenSHA256 is the digest of the token. The runner does not know the token, so that no program can learn it.
	TokenSHA256 [sha256.Size]byte
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
	return tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.Certificate},
	}), nil
}

// authorizes reports whether a token is the runner's, in constant time.
func (r *Remote) authorizes(token string) bool {
	digest := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(digest[:], r.TokenSHA256[:]) == 1
}

// admitRemote serves a connection over TCP. What it may do depends on the token of its hello.
func (s *Server) admitRemote(ctx context.Context, conn net.Conn) {
	c := newConnection(s, conn)
	c.caller = s.shared.newCaller(c)
	s.admit(ctx, c, maxRemote)
}

// identify checks the token of a hello over TCP, and permits longer lines after it. Those that connect and close, as
// the kubelet does to see whether the runner listens, send none.
func (c *connection) identify(reader *protocol.Reader, hello *protocol.Message) *protocol.Error {
	if c.caller == nil {
		return nil
	}
	if !c.server.Remote.authorizes(hello.Token) {
		return &protocol.Error{Code: protocol.CodeUnauthorized, Message: "The token is not the token of the runner."}
	}
	reader.Bound(protocol.DefaultLines)
	return nil
}

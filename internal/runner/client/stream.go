// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

const (
	// lingering is how long the program may take to close its end of a stream after this end is closed.
	lingering = 30 * time.Second
	// maxOffers is how many streams of a call there are at once, including streams that are ending.
	maxOffers = 2 * protocol.MaxStreams
	// lastBytes is how long a stream may take to end after its call.
	lastBytes = 5 * time.Second
)

// HasGateways reports whether calls may have a gateway. Runners of version 1 have none.
func (c *Client) HasGateways() bool { return c.version >= protocol.CallerVersion }

// NewGateway returns a new text to stand for the address of a gateway in the parameters of a call.
func NewGateway() string { return rand.Text() }

// streams are the connections that the programs of a call have to its gateway.
type streams struct {
	client *Client
	serve  func(net.Conn)
	// lose fails the call.
	lose func(error)

	mu     sync.Mutex
	open   map[*stream]bool
	offers int
	ended  bool
}

// stream is one connection of a program. It ends in order with the alert close_notify of either end. A stream that
// ends without the alert has broken.
type stream struct {
	*tls.Conn
	of     *streams
	in     io.Reader
	closed atomic.Bool
}

// tryThrough makes a call whose programs reach a gateway. A connection that breaks between the client and the runner
// ends the call, since it is not known how much the program has received.
func (p *Program) tryThrough(ctx context.Context, call Call) (Result, error) {
	running, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	s := &streams{client: p.client, serve: call.Serve, open: map[*stream]bool{}, lose: func(err error) {
		lose(&Failure{Evidence: &protocol.Evidence{}, Err: &protocol.Error{Code: protocol.CodeGatewayLost,
			Message: "A connection to the gateway has broken: " + err.Error() + "."}})
	}}
	result, err := p.client.do(running, p.message(call), call.Ask, s)
	var lost *Failure
	broke := ctx.Err() == nil && errors.As(context.Cause(running), &lost)
	s.close()
	if broke {
		return Result{}, lost
	}
	return result, err
}

// connected connects to the runner for a connection that a program has made.
func (c *Client) connected(m *protocol.Message) {
	c.mu.Lock()
	p := c.pending[m.Call]
	c.mu.Unlock()
	if p == nil || p.streams == nil { // the call has ended
		return
	}
	s := p.streams
	s.mu.Lock()
	s.offers++
	tooMany := s.offers > maxOffers
	s.mu.Unlock()
	if tooMany {
		s.lose(fmt.Errorf("the runner offers more than %d at once", maxOffers))
		return
	}
	go s.take(p.ctx, m.Stream)
}

// take connects to the runner and serves the connection.
func (s *streams) take(ctx context.Context, key string) {
	conn, in, err := dialStream(ctx, s.client.at, key)
	stream := &stream{Conn: conn, in: in, of: s}
	if err != nil {
		s.leave(nil)
		var refused *protocol.Error
		ended := errors.As(err, &refused) && refused.Code == protocol.CodeUnknownStream // its call ended; the answer follows
		if ctx.Err() == nil && !ended {
			s.lose(err)
		}
		return
	}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.open[stream] = true
	}
	s.mu.Unlock()
	if ended {
		_ = stream.Close()
		return
	}
	s.serve(stream)
}

// DialStream takes the stream with a key, which carries the bytes of a program's connection. Calls take their streams
// by themselves.
func DialStream(ctx context.Context, at Address, key string) (net.Conn, error) {
	conn, in, err := dialStream(ctx, at, key)
	if err != nil {
		return nil, err
	}
	return &stream{Conn: conn, in: in, of: &streams{ended: true}}, nil
}

func dialStream(ctx context.Context, at Address, key string) (*tls.Conn, io.Reader, error) {
	at.unbounded = true
	conn, err := at.dial(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the runner: %w", err)
	}
	reader := protocol.NewReader(conn, protocol.HelloLines, protocol.ToCaller)
	if _, err := greet(conn, reader, &protocol.Message{Type: protocol.TypeHello,
		Versions: []int{protocol.CallerVersion}, Token: at.Token, Stream: key}); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("connecting to the runner: %w", err)
	}
	return conn.(*tls.Conn), reader.Rest(), nil
}

// leave forgets a stream that has ended.
func (s *streams) leave(ended *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers--
	delete(s.open, ended)
}

// close ends the streams of a call that has ended. The runner ends them as well, in order.
func (s *streams) close() {
	s.mu.Lock()
	s.ended = true
	open := s.open
	s.open = map[*stream]bool{}
	s.mu.Unlock()
	if len(open) > 0 {
		time.AfterFunc(lastBytes, func() {
			for stream := range open {
				_ = stream.NetConn().Close()
			}
		})
	}
}

// Read implements net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	if err != nil && !protocol.IsOrderly(err) {
		s.broke(err)
	}
	return n, err
}

// Write implements net.Conn.
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		s.broke(err)
	}
	return n, err
}

// broke fails the call, unless this end has closed the stream or its own deadline has passed.
func (s *stream) broke(err error) {
	if s.closed.Load() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		return
	}
	s.of.mu.Lock()
	ended := s.of.ended
	s.of.mu.Unlock()
	if !ended {
		s.of.lose(err)
	}
}

// Close implements net.Conn. The program may still be writing: its bytes are dropped, so that the end of the stream
// reaches it after the last bytes.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	go func() {
		defer s.of.leave(s)
		_ = s.SetDeadline(time.Now().Add(lingering))
		if s.CloseWrite() == nil { // an error says that the other end has gone
			_, _ = io.Copy(io.Discard, s.Conn)
		}
		_ = s.NetConn().Close()
	}()
	return nil
}

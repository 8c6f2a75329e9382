// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// loopURL is the address of the broker for its own requests.
const loopURL = "http://broker"

// loop serves the broker's own requests over pipes in memory.
type loop struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	server *http.Server
	sender *http.Transport
}

func newLoop(handler http.Handler) *loop {
	l := &loop{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	l.sender = &http.Transport{DialContext: l.dial}
	go func() { _ = l.server.Serve(l) }() // it returns net.ErrClosed
	return l
}

// client returns a client that reaches the broker, whatever the address.
func (l *loop) client() *http.Client { return &http.Client{Transport: l.sender} }

func (l *loop) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *loop) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *loop) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *loop) Addr() net.Addr { return &net.UnixAddr{Name: "broker", Net: "pipe"} }

// close ends the connections.
func (l *loop) close() {
	l.sender.CloseIdleConnections()
	_ = l.server.Close()
	_ = l.Close()
}

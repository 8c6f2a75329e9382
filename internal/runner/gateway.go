// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// The bounds of gateways. A program that makes more connections has to wait.
const (
	// maxStreams is how many connections all calls have at once.
	maxStreams = 1024
	// A call makes freeConnections without a pause, and then one connection per connectionPause.
	freeConnections = 512
	connectionPause = 50 * time.Millisecond
	// takeTimeout is how long a caller may take to connect.
	takeTimeout = 30 * time.Second
)

// offers has the connections of programs that callers may take, by key.
type offers struct {
	// places has an element for each connection of all gateways.
	places chan struct{}

	mu      sync.Mutex
	waiting map[string]chan<- *connection
}

func newOffers() *offers {
	return &offers{places: make(chan struct{}, maxStreams), waiting: map[string]chan<- *connection{}}
}

// make returns the key of a new offer, and the channel that receives the caller's connection.
func (o *offers) make() (string, <-chan *connection) {
	key, taken := rand.Text(), make(chan *connection, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[key] = taken
	return key, taken
}

// take returns the channel on which the maker of an offer waits; nil if there is no such offer. The caller of take
// sends its connection once it can carry bytes, or nil.
func (o *offers) take(key string) chan<- *connection {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.waiting[key]
	delete(o.waiting, key)
	return taken
}

// withdraw ends an offer. It reports whether the offer was still open.
func (o *offers) withdraw(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, waits := o.waiting[key]
	delete(o.waiting, key)
	return waits
}

// callGateway stands on the loopback interface for the gateway of a call's caller, as long as the call runs. Any
// program of the container can connect to it; the caller's gateway decides what the program may do.
type callGateway struct {
	server   *Server
	listener net.Listener
	// offer offers a connection to the caller, and lose reports a broken connection. Both are called in the background.
	offer func(key string)
	lose  func(reason string)
	// places has an element for each connection of the call.
	places  chan struct{}
	ended   chan struct{}
	endOnce sync.Once
}

// openGateway begins to listen.
func (s *Server) openGateway(offer, lose func(string)) (*callGateway, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // It does not wait.
	if err != nil {
		return nil, fmt.Errorf("listening for the gateway of a call: %w", err)
	}
	g := &callGateway{server: s, listener: listener, offer: offer, lose: lose,
		places: make(chan struct{}, protocol.MaxStreams), ended: make(chan struct{})}
	go g.accept()
	return g, nil
}

// address returns the address to which programs connect.
func (g *callGateway) address() netip.AddrPort { return g.listener.Addr().(*net.TCPAddr).AddrPort() }

// end ends the gateway and its connections. It does not wait.
func (g *callGateway) end() {
	g.endOnce.Do(func() {
		close(g.ended)
		_ = g.listener.Close()
	})
}

// accept accepts each connection once there is a place for it.
func (g *callGateway) accept() {
	for n := 0; ; n++ {
		if n >= freeConnections && !g.pause(connectionPause) || !g.occupy(g.places) {
			return
		}
		conn, err := g.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example too many open files
			g.server.Log.Error("A connection to a gateway could not be accepted.", "err", err)
			<-g.places
			if !g.pause(sampling) {
				return
			}
			continue
		}
		if !g.occupy(g.server.offers.places) {
			_ = conn.Close()
			return
		}
		go g.carry(conn.(*net.TCPConn))
	}
}

// occupy waits for a place, and reports whether it got one before the gateway ended.
func (g *callGateway) occupy(places chan<- struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-g.ended:
		return false
	}
}

func (g *callGateway) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-g.ended:
		return false
	}
}

// carry carries the bytes of a program's connection until it has ended.
func (g *callGateway) carry(program *net.TCPConn) {
	defer func() {
		_ = program.Close()
		<-g.server.offers.places
		<-g.places
	}()
	key, taken := g.server.offers.make()
	g.offer(key)
	late := time.NewTimer(takeTimeout)
	defer late.Stop()
	var caller *connection
	isTaken := false
	select {
	case caller = <-taken:
		isTaken = true
	case <-late.C:
	case <-g.ended:
	}
	if !isTaken && !g.server.offers.withdraw(key) {
		caller = <-taken
	}
	if caller == nil {
		g.broke("The caller has not connected in time.")
		return
	}
	defer close(caller.carried)
	s := &stream{gateway: g, program: program, caller: caller}
	s.run()
}

// broke fails the call, unless the call has ended. The program sees the end of its connection later, so that its own
// failure comes after this one.
func (g *callGateway) broke(reason string) {
	select {
	case <-g.ended:
	default:
		g.lose(reason)
	}
}

// openGateway returns the parameters of a call. If the call has a gateway, it begins to listen for it, and puts the
// address into the parameters.
func (s *slot) openGateway(r *request) (json.RawMessage, error) {
	if r.Gateway == "" {
		return r.Params, nil
	}
	p := s.program
	gateway, err := p.conn.server.openGateway(
		func(key string) {
			p.conn.send(&protocol.Message{Type: protocol.TypeConnected, Program: p.name, Call: r.ID, Stream: key})
		},
		func(reason string) {
			p.post(func() { p.end(r, &protocol.Error{Code: protocol.CodeGatewayLost, Message: reason}) })
		})
	if err != nil {
		return nil, err
	}
	r.gateway, r.forget = gateway, s.running.permit(gateway.address())
	return bytes.ReplaceAll(r.Params, []byte(r.Gateway), []byte(gateway.address().String())), nil
}

// closeGateway ends the gateway of a request, if it has one.
func (r *request) closeGateway() {
	if r.gateway != nil {
		r.gateway.end()
		r.forget()
	}
}

// permit lets the process connect to the gateway of one of its calls, until the returned function is called.
func (r *running) permit(gateway netip.AddrPort) (forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gateways[gateway] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.gateways, gateway)
	}
}

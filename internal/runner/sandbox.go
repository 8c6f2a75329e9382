// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// sandboxOf returns the isolation of a program's processes; nil if the program has no sandbox.
func (s *Server) sandboxOf(spec protocol.Spec) *isolation.Found {
	if spec.Sandbox == nil {
		return nil
	}
	return &s.Isolation
}

// admitted answers the start of a program whose processes start with its calls. It reports whether the program may
// run.
func (p *program) admitted() bool {
	if err := p.conn.server.Isolation.Check(p.spec.Sandbox.Minimum); err != nil {
		p.failStart(&protocol.Error{Code: protocol.CodeIsolation, Message: err.Error()}, nil)
		return false
	}
	p.conn.send(&protocol.Message{
		Type: protocol.TypeStarted, ID: p.startID, Program: p.name, Evidence: &protocol.Evidence{},
	})
	p.startID = 0
	return true
}

// networkOf returns the isolation of the network of a program's processes; nil if their network is open, or cannot be
// confined and need not be.
func (s *Server) networkOf(spec protocol.Spec) *isolation.Found {
	if spec.Network == nil || !s.Isolation.Notifies {
		return nil
	}
	return &s.Isolation
}

// networkIsConfined reports whether a program may start, because its network can be confined as its spec demands.
// Otherwise it answers the start with an error.
func (p *program) networkIsConfined() bool {
	network, server := p.spec.Network, p.conn.server
	if network == nil {
		return true
	}
	if err := server.Isolation.CheckNetwork(network.Minimum, network.Closed); err != nil {
		p.failStart(&protocol.Error{Code: protocol.CodeIsolation, Message: err.Error()}, nil)
		return false
	}
	if !server.Isolation.Notifies && !network.Closed {
		server.Log.Warn("The kernel cannot confine the network of a program, which reaches what its pod reaches.",
			"program", p.name)
	}
	return true
}

// connect makes the connections of a process with a confined network.
func (r *running) connect() {
	addresses, err := r.spec.Network.Addresses()
	if err == nil {
		err = isolation.Connect(r.child.Connections, func(to netip.AddrPort) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Contains(addresses, to) || r.spec.Network.Gateway && r.gateways[to]
		})
	}
	if err != nil {
		r.server.Log.Error("The connections of a program cannot be made.", "err", err)
	}
}

// claim reports whether a process may start for a request. If programs can read each other's files or end each other,
// a process for one call runs only while no other such process does, and its files are removed before the next process
// starts. A session does not wait: it could wait for the call of its own episode.
func (s *slot) claim(r *request) bool {
	server := s.program.conn.server
	if s.program.spec.Sandbox == nil || r.Type == protocol.TypeOpen || server.Isolation.KeepsApart() {
		return true
	}
	s.claimed = server.exclusive.CompareAndSwap(false, true)
	return s.claimed
}

// release lets the next process start.
func (s *slot) release() {
	if s.claimed {
		s.claimed = false
		s.program.conn.server.exclusive.Store(false)
		s.program.tryPost(s.program.dispatch)
	}
}

// feed writes the standard input of a plain process and reads its output. The process takes its request as it starts,
// since no message says that it is ready.
func (s *slot) feed(r *running) {
	request := s.only
	s.state, s.capacity, s.wire = slotReady, 1, 1
	request.slot, request.wire, request.running = s, 1, time.Now()
	s.requests[1] = request
	r.watch.begin()
	r.follow(r.capture, func() {
		_, _ = r.child.In.WriteString(s.stdin) // a process that does not read it has no need of it
		_ = r.child.In.Close()
	}, func() { s.program.post(func() { s.died(r) }) })
}

// capture reads the standard output of a plain process.
func (r *running) capture() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.child.Out.Read(buffer)
		if n > 0 {
			r.mu.Lock()
			if int64(len(r.stdout)) <= r.spec.Limits.OutputBytes {
				r.stdout = append(r.stdout, buffer[:n]...)
			}
			r.mu.Unlock()
			r.watch.hasPrinted(n)
		}
		if err != nil {
			return
		}
	}
}

// settle answers the call of a plain process that has ended by itself or by a limit, with its output.
func (s *slot) settle(r *running, evidence protocol.Evidence) {
	limit := r.spec.Limits.CPUSeconds
	if evidence.Limit == "" && limit > 0 && evidence.CPUSeconds > limit { // the last look was too early to see it
		evidence.Limit, evidence.Value, evidence.Seen = "cpuSeconds", limit, evidence.CPUSeconds
	}
	r.mu.Lock()
	outcome := protocol.Outcome{
		Stdout: string(r.stdout[:min(int64(len(r.stdout)), r.spec.Limits.OutputBytes)]), Exit: evidence.Exit,
		Signal: evidence.Signal, Limit: evidence.Limit,
	}
	r.mu.Unlock()
	value, err := json.Marshal(outcome)
	if err != nil {
		return // cannot happen: a struct of texts and a number
	}
	for id, request := range s.requests {
		delete(s.requests, id)
		evidence.Seconds = request.clock(time.Now()).Seconds()
		s.program.answer(request, &protocol.Message{Type: protocol.TypeResult, Value: value, Evidence: &evidence})
	}
}

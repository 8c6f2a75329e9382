// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// program is a program that a start has begun. One goroutine, run, owns all fields; others post functions to it.
type program struct {
	conn  *connection
	name  string
	spec  protocol.Spec
	inbox chan func()
	// ended is closed when nothing of the program is left.
	ended chan struct{}

	startID   int64 // of the start, until it is answered
	stopID    int64
	farewell  []*protocol.Message // sent once the name of the program is free again
	stopping  bool
	slots     []*slot
	alone     map[*slot]bool // for one call each
	sessions  map[string]*session
	requests  map[int64]*request
	queue     []*request
	questions map[int64]*question
	wiping    sync.WaitGroup
}

// session is a series of requests that share a process and a directory.
type session struct {
	name    string
	slot    *slot // nil once the process has ended
	seed    uint64
	dir     string
	busy    bool
	opening bool
}

// request is a caller's open, call or close that has not been answered.
type request struct {
	*protocol.Message
	session *session
	slot    *slot // nil while it waits for one
	wire    int64 // its id for the process
	dir     string
	// cancelled is when the process was sent a cancel of the request; zero if it was not.
	cancelled time.Time

	// The clock has run since running, unless questions are open. spent is the time that it counted before.
	running   time.Time
	spent     time.Duration
	questions int
	cpu       time.Duration // of the process, when the request began

	// gateway is the gateway of the call, and forget withdraws the permission of the process to connect to it.
	gateway *callGateway
	forget  func()
}

// question is a question that the caller has not answered.
type question struct {
	request *request
	wire    int64
}

func newProgram(c *connection, start *protocol.Message, spec protocol.Spec) *program {
	return &program{
		conn: c, name: start.Program, spec: spec, startID: start.ID,
		inbox: make(chan func(), 256), ended: make(chan struct{}),
		alone: map[*slot]bool{}, sessions: map[string]*session{},
		requests: map[int64]*request{}, questions: map[int64]*question{},
	}
}

// post passes a function to run, which calls it. It drops the function if the program has ended.
func (p *program) post(f func()) {
	select {
	case p.inbox <- f:
	case <-p.ended:
	}
}

// tryPost posts a function, or drops it if the inbox is full: a later look does the same work.
func (p *program) tryPost(f func()) {
	select {
	case p.inbox <- f:
	default:
	}
}

func (p *program) run() {
	switch {
	case p.spec.Sandbox != nil:
		p.stopping = !p.admitted()
	case !p.networkIsConfined():
		p.stopping = true
	default:
		for range p.spec.Processes {
			s := &slot{program: p}
			p.slots = append(p.slots, s)
			s.spawn()
		}
	}
	for !p.stopping || p.isAlive() {
		(<-p.inbox)()
	}
	p.wiping.Wait()
	p.conn.forget(p)
	if p.stopID != 0 {
		p.farewell = append(p.farewell, &protocol.Message{Type: protocol.TypeStopped, ID: p.stopID, Program: p.name})
	}
	for _, m := range p.farewell {
		p.conn.send(m)
	}
	close(p.ended)
}

func (p *program) all() []*slot {
	all := slices.Clone(p.slots)
	for s := range p.alone {
		all = append(all, s)
	}
	return all
}

func (p *program) isAlive() bool {
	return slices.ContainsFunc(p.all(), func(s *slot) bool { return s.state != slotEnded })
}

// stop ends the program. The id is the id of a caller's stop, or 0.
func (p *program) stop(id int64) {
	p.stopID = cmp.Or(p.stopID, id)
	if p.stopping {
		return
	}
	p.stopping = true
	for _, r := range p.requests {
		p.fail(r, &protocol.Error{Code: protocol.CodeCancelled, Message: "The program was stopped."}, nil)
	}
	if p.startID != 0 {
		p.failStart(&protocol.Error{Code: protocol.CodeCancelled, Message: "The program was stopped."}, nil)
	}
	for _, s := range p.all() {
		s.stop()
	}
}

func (p *program) failStart(err *protocol.Error, evidence *protocol.Evidence) {
	p.farewell = append(p.farewell,
		&protocol.Message{Type: protocol.TypeError, ID: p.startID, Program: p.name, Error: err, Evidence: evidence})
	p.startID = 0
}

// request begins a caller's stop, open, call or close.
func (p *program) request(m *protocol.Message) {
	if m.Type == protocol.TypeStop {
		p.stop(m.ID)
		return
	}
	if p.spec.Sandbox != nil && (m.Type == protocol.TypeOpen || m.Type == protocol.TypeCall && m.Session == "") {
		m.Alone = true
	}
	r := &request{Message: m}
	p.requests[m.ID] = r
	if wrong := p.place(r); wrong != nil {
		p.fail(r, wrong, nil)
		return
	}
	p.dispatch()
}

// place queues a request, or gives it to the process of its session. It returns the reason if it can do neither.
func (p *program) place(r *request) *protocol.Error {
	switch {
	case p.stopping:
		return &protocol.Error{Code: protocol.CodeCancelled, Message: "The program was stopped."}
	case r.Type == protocol.TypeOpen && p.sessions[r.Session] != nil:
		return &protocol.Error{Code: protocol.CodeBadRequest, Field: "session", Message: "There is a session of this name."}
	case len(p.queue) == maxQueue:
		return &protocol.Error{Code: protocol.CodeBusy, Message: fmt.Sprintf("%d requests wait, which is the limit.",
			maxQueue)}
	case r.Type == protocol.TypeOpen:
		r.session = &session{name: r.Session, seed: r.Seed, busy: true, opening: true}
		p.sessions[r.Session] = r.session
	case r.Session != "":
		return p.placeInSession(r)
	}
	p.queue = append(p.queue, r)
	return nil
}

func (p *program) placeInSession(r *request) *protocol.Error {
	s := p.sessions[r.Session]
	switch {
	case s == nil:
		return &protocol.Error{Code: protocol.CodeUnknownSession, Message: fmt.Sprintf("There is no session %q.", r.Session)}
	case s.busy:
		return &protocol.Error{Code: protocol.CodeSessionBusy, Message: "The session has a request already."}
	case s.slot == nil && r.Type == protocol.TypeClose:
		delete(p.sessions, s.name)
		p.answer(r, &protocol.Message{Type: protocol.TypeResult})
		return nil
	case s.slot == nil:
		return &protocol.Error{Code: protocol.CodeSessionLost, Message: "The process of the session has ended."}
	}
	r.session, s.busy = s, true
	s.slot.assign(r)
	return nil
}

// dispatch assigns waiting requests to processes that have room.
func (p *program) dispatch() {
	for len(p.queue) > 0 && !p.stopping {
		r := p.queue[0]
		var s *slot
		if r.Alone {
			if len(p.alone) >= p.spec.Processes {
				return
			}
			s = &slot{program: p, only: r}
			if !s.claim(r) {
				return
			}
			p.alone[s] = true
			p.queue = p.queue[1:]
			s.spawn()
			continue
		}
		for _, candidate := range p.slots {
			if candidate.hasRoom() && (s == nil || candidate.load() < s.load()) {
				s = candidate
			}
		}
		if s == nil {
			return
		}
		p.queue = p.queue[1:]
		s.assign(r)
	}
}

// reply takes a caller's answer to a question, or its cancel.
func (p *program) reply(m *protocol.Message) {
	if m.Type == protocol.TypeCancel {
		if r := p.requests[m.ID]; r != nil {
			p.end(r, &protocol.Error{Code: protocol.CodeCancelled, Message: "The caller has cancelled the request."})
		}
		return
	}
	q := p.questions[m.ID]
	if q == nil {
		return
	}
	delete(p.questions, m.ID)
	q.request.slot.answered(q, m)
}

// end ends a request that its process has not answered.
func (p *program) end(r *request, reason *protocol.Error) {
	if p.requests[r.ID] != r {
		return
	}
	p.queue = slices.DeleteFunc(p.queue, func(other *request) bool { return other == r })
	s := r.slot
	if r.session != nil && r.session.opening && s == nil {
		delete(p.sessions, r.session.name)
	}
	p.fail(r, reason, nil)
	if s != nil {
		s.cancel(r)
		return
	}
	for s := range p.alone {
		if s.only == r {
			s.stop()
		}
	}
}

// answer ends a request.
func (p *program) answer(r *request, m *protocol.Message) {
	if p.requests[r.ID] != r {
		return
	}
	delete(p.requests, r.ID)
	r.closeGateway()
	m.ID, m.Program = r.ID, p.name
	p.conn.send(m)
}

func (p *program) fail(r *request, err *protocol.Error, evidence *protocol.Evidence) {
	p.answer(r, &protocol.Message{Type: protocol.TypeError, Error: err, Evidence: evidence})
}

// failWaiting fails the requests that wait for a process, since no process can be started.
func (p *program) failWaiting(err *protocol.Error, evidence *protocol.Evidence) {
	waiting := p.queue
	p.queue = nil
	for _, r := range waiting {
		if r.session != nil {
			delete(p.sessions, r.session.name)
		}
		p.fail(r, err, evidence)
	}
}

// wipe removes directories in the background, and then calls a function.
func (p *program) wipe(then func(), names ...string) {
	p.wiping.Go(func() {
		for _, name := range names {
			if err := p.conn.server.Scratch.Wipe(name); err != nil {
				p.conn.server.Log.Warn("A scratch directory could not be wiped. It is wiped when the runner starts.", "err", err)
			}
		}
		then()
	})
}

// look looks at the clocks.
func (p *program) look(now time.Time) {
	for _, s := range p.all() {
		s.look(now)
	}
	p.dispatch()
}

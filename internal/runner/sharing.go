// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// linger is how long a program stays after its last caller has left, in case a caller connects again: loading the
// program again may take long.
const linger = time.Minute

// busyPause is the time between two tries to end a session that still has a request.
const busyPause = time.Second

// sharing has the programs of callers over TCP. Callers that start equal programs share one program, so that it is
// loaded once and has one set of processes, however many callers there are. To the programs, sharing is a single
// caller.
type sharing struct {
	server *Server
	conn   *connection // to which the programs belong

	mu        sync.Mutex
	last      int64 // the largest id of a request to a program
	programs  map[specDigest]*sharedProgram
	starts    map[int64]*sharedProgram // by the id of the start
	requests  map[int64]*passed
	questions map[int64]*passed
	// closes are the sessions of callers that have left, by the id of the close that ends the session.
	closes  map[int64]sessionOf
	callers int64 // how many callers there have been, for the names of sessions
}

// sessionOf is a session of a program, with the name that the program knows.
type sessionOf struct {
	shared  *sharedProgram
	session string
}

type specDigest [sha256.Size]byte

// sharedProgram is a program that some callers have.
type sharedProgram struct {
	program *program
	digest  specDigest
	started *protocol.Message // the answer to its start; nil while it is not answered
	waiting []*passed         // starts that wait for the answer
	users   int
	idle    int // how often a user has left
}

// caller has the programs, requests and sessions of one caller.
type caller struct {
	conn   *connection
	number int64
	// These are guarded by sharing.mu.
	programs map[string]*sharedProgram // by its own names
	requests map[int64]*passed         // open requests, by the caller's ids
	sessions map[string]*sharedProgram // sessions that may be open, by the names that the programs know
	left     bool
}

// passed is a request that was passed on for a caller.
type passed struct {
	caller  *caller
	message protocol.Message // as the caller sent it
	shared  *sharedProgram
	id      int64 // that the program knows
	asked   []int64
}

func newSharing(s *Server) *sharing {
	shared := &sharing{
		server: s, programs: map[specDigest]*sharedProgram{}, starts: map[int64]*sharedProgram{},
		requests: map[int64]*passed{}, questions: map[int64]*passed{},
		closes: map[int64]sessionOf{},
	}
	shared.conn = &connection{server: s, programs: map[string]*program{}, deliver: shared.deliver}
	return shared
}

func (s *sharing) newCaller(c *connection) *caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers++
	return &caller{
		conn: c, number: s.callers, programs: map[string]*sharedProgram{}, requests: map[int64]*passed{},
		sessions: map[string]*sharedProgram{},
	}
}

// start gives a caller a program that runs already, or starts a new one.
func (s *sharing) start(c *caller, m *protocol.Message, spec protocol.Spec) *protocol.Error {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeBadRequest, Field: "spec", Message: err.Error()}
	}
	digest := specDigest(sha256.Sum256(encoded))
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.programs[m.Program] != nil {
		return nameTaken()
	}
	p := s.programs[digest]
	if p == nil {
		if len(s.programs) == maxPrograms {
			return tooManyPrograms()
		}
		p = s.begin(digest, spec)
	}
	p.users++
	c.programs[m.Program] = p
	if p.started != nil {
		c.conn.send(answerTo(m, p.started))
		return nil
	}
	p.waiting = append(p.waiting, &passed{caller: c, message: *m, shared: p})
	return nil
}

// begin starts a program.
func (s *sharing) begin(digest specDigest, spec protocol.Spec) *sharedProgram {
	s.last++
	start := &protocol.Message{ID: s.last, Program: fmt.Sprintf("shared-%d", s.last)}
	p := &sharedProgram{program: newProgram(s.conn, start, spec), digest: digest}
	s.programs[digest], s.starts[start.ID] = p, p
	s.conn.mu.Lock()
	s.conn.programs[start.Program] = p.program
	s.conn.mu.Unlock()
	go p.program.run()
	return p
}

// request passes an open, a call, a close or a stop of a caller on.
func (s *sharing) request(c *caller, m *protocol.Message) *protocol.Error {
	s.mu.Lock()
	p := c.programs[m.Program]
	if p == nil {
		s.mu.Unlock()
		return unknownProgram(m.Program)
	}
	if m.Type == protocol.TypeStop {
		delete(c.programs, m.Program)
		ended := s.release(c, p)
		s.mu.Unlock()
		run(ended)
		s.drop(p, 0)
		c.conn.send(&protocol.Message{Type: protocol.TypeStopped, ID: m.ID, Program: m.Program})
		return nil
	}
	s.last++
	r := &passed{caller: c, message: *m, shared: p, id: s.last}
	s.requests[r.id], c.requests[m.ID] = r, r
	inner := *m
	inner.ID, inner.Program = r.id, p.program.name
	if m.Session != "" {
		inner.Session = c.session(m.Session)
		c.sessions[inner.Session] = p
	}
	s.mu.Unlock()
	p.program.post(func() { p.program.request(&inner) })
	return nil
}

// session returns the name by which a program knows a session of the caller.
func (c *caller) session(name string) string { return fmt.Sprintf("%d/%s", c.number, name) }

// reply passes a cancel or an answer of a caller on.
func (s *sharing) reply(c *caller, m *protocol.Message) {
	inner := *m
	s.mu.Lock()
	r := c.requests[m.ID]
	if m.Type == protocol.TypeAnswer {
		if r = s.questions[m.ID]; r == nil || r.caller != c {
			s.mu.Unlock()
			return
		}
		delete(s.questions, m.ID)
	} else if r != nil {
		inner.ID = r.id
	}
	s.mu.Unlock()
	if r != nil { // its request may have ended meanwhile
		r.shared.program.post(func() { r.shared.program.reply(&inner) })
	}
}

// deliver passes a program's message to the caller that it concerns. It never waits for a caller.
func (s *sharing) deliver(m *protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.starts[m.ID]; p != nil && (m.Type == protocol.TypeStarted || m.Type == protocol.TypeError) {
		s.startAnswered(p, m)
		return
	}
	if m.Type == protocol.TypeAsk {
		if r := s.requests[m.Call]; r != nil {
			s.questions[m.ID] = r
			r.asked = append(r.asked, m.ID)
			question := *m
			question.Call, question.Program, question.Session = r.message.ID, r.message.Program, r.message.Session
			r.caller.conn.send(&question)
		}
		return
	}
	if m.Type == protocol.TypeConnected {
		if r := s.requests[m.Call]; r != nil {
			offer := *m
			offer.Call, offer.Program = r.message.ID, r.message.Program
			r.caller.conn.send(&offer)
		}
		return
	}
	if left, ok := s.closes[m.ID]; ok {
		delete(s.closes, m.ID)
		if m.Error != nil && m.Error.Code == protocol.CodeSessionBusy { // its request is being cancelled
			time.AfterFunc(busyPause, func() { s.close(left) })
		}
		return
	}
	r := s.requests[m.ID]
	if r == nil {
		return // a request of a caller that has left
	}
	s.forget(r)
	closed := r.message.Type == protocol.TypeClose || r.message.Type == protocol.TypeOpen && m.Type == protocol.TypeError
	if closed {
		delete(r.caller.sessions, r.caller.session(r.message.Session))
	}
	r.caller.conn.send(answerTo(&r.message, m))
}

// startAnswered answers the callers that wait for a start. A program that did not start no longer belongs to them.
func (s *sharing) startAnswered(p *sharedProgram, m *protocol.Message) {
	delete(s.starts, m.ID)
	waiting := p.waiting
	p.waiting = nil
	if m.Type == protocol.TypeStarted {
		p.started = m
	} else {
		s.remove(p)
	}
	for _, start := range waiting {
		c := start.caller
		if c.left || c.programs[start.message.Program] != p {
			continue
		}
		if p.started == nil {
			delete(c.programs, start.message.Program)
		}
		c.conn.send(answerTo(&start.message, m))
	}
}

// answerTo returns an answer with the ID and the program's name that its caller knows.
func answerTo(asked, answer *protocol.Message) *protocol.Message {
	given := *answer
	given.ID, given.Program = asked.ID, asked.Program
	return &given
}

func (s *sharing) remove(p *sharedProgram) {
	if s.programs[p.digest] == p {
		delete(s.programs, p.digest)
	}
}

// forget drops a request that was answered, or whose caller no longer waits for the answer.
func (s *sharing) forget(r *passed) {
	delete(s.requests, r.id)
	delete(r.caller.requests, r.message.ID)
	for _, id := range r.asked {
		delete(s.questions, id)
	}
}

// leave ends the requests and sessions of a caller, and its use of programs.
func (s *sharing) leave(c *caller) {
	s.mu.Lock()
	c.left = true
	var ended []func()
	released := c.programs
	c.programs = map[string]*sharedProgram{}
	for _, p := range released {
		ended = append(ended, s.release(c, p)...)
	}
	s.mu.Unlock()
	run(ended)
	for _, p := range released {
		s.drop(p, linger)
	}
}

// release ends the requests and sessions of a caller in a program. It returns functions that must be called without
// the lock.
func (s *sharing) release(c *caller, p *sharedProgram) []func() {
	p.users--
	p.idle++
	var ended []func()
	for _, r := range c.requests {
		if r.shared != p {
			continue
		}
		s.forget(r)
		cancel := &protocol.Message{Type: protocol.TypeCancel, ID: r.id, Program: p.program.name}
		ended = append(ended, func() { p.program.post(func() { p.program.reply(cancel) }) })
	}
	for session, of := range c.sessions {
		if of != p {
			continue
		}
		delete(c.sessions, session)
		ended = append(ended, func() { s.close(sessionOf{p, session}) })
	}
	return ended
}

// close ends a session whose caller has left.
func (s *sharing) close(of sessionOf) {
	s.mu.Lock()
	s.last++
	end := &protocol.Message{Type: protocol.TypeClose, ID: s.last, Program: of.shared.program.name, Session: of.session}
	s.closes[s.last] = of
	s.mu.Unlock()
	of.shared.program.post(func() { of.shared.program.request(end) })
}

func run(functions []func()) {
	for _, function := range functions {
		function()
	}
}

// drop ends a program after a time, unless the program has had a user meanwhile.
func (s *sharing) drop(p *sharedProgram, after time.Duration) {
	s.mu.Lock()
	idle := p.idle
	s.mu.Unlock()
	end := func() {
		s.mu.Lock()
		unused := p.users == 0 && p.idle == idle
		if unused {
			s.remove(p)
		}
		s.mu.Unlock()
		if unused {
			p.program.post(func() { p.program.stop(0) })
		}
	}
	if after == 0 {
		end()
		return
	}
	time.AfterFunc(after, end)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// slotState is the state of a slot's process.
type slotState int

const (
	slotStarting slotState = iota // a process starts; it is not ready
	slotReady
	slotWaiting // the process has ended; the next one starts at retryAt
	slotEnded   // no other process follows
)

// The bounds of the pause before a process is started again. The pause grows from the second end in a row on. An
// answered request resets the count.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// pause returns how long to wait before a process starts again, after so many ends in a row.
func pause(ends int) time.Duration {
	if ends < 2 {
		return 0
	}
	return min(firstPause<<min(ends-2, 10), lastPause)
}

// cancelGrace is how long a process may take to answer a request that was cancelled.
const cancelGrace = 5 * time.Second

// maxZombies is how many zombies an idle process may have before another process replaces it.
const maxZombies = 16

// slot is the place of one process at a time.
type slot struct {
	program *program
	only    *request // the request of a slot for one request; nil otherwise
	state   slotState
	running *running // the process, from its start until it has ended
	began   time.Time
	retryAt time.Time
	ends    int // in a row

	cancels   bool
	capacity  int   // how many requests the process takes at once
	wire      int64 // the largest id of a request to the process
	requests  map[int64]*request
	questions map[int64]bool // open questions, by the id that the process gave
	sessions  map[*session]bool
	dirs      []string // empty directories, for calls without a session
	eof       time.Time
	stdin     string // of a plain process
	claimed   bool
}

// spawn starts a process in the background.
func (s *slot) spawn() {
	s.state, s.began = slotStarting, time.Now()
	s.cancels, s.wire, s.eof = false, 0, time.Time{}
	s.requests, s.questions, s.sessions, s.dirs = map[int64]*request{}, map[int64]bool{}, map[*session]bool{}, nil
	p, spec := s.program, s.program.spec
	if spec.Plain {
		var wrong *protocol.Error
		if spec, s.stdin, wrong = spec.RunOf(s.only.Message); wrong != nil {
			s.ended(wrong, protocol.Evidence{})
			return
		}
	}
	go func() {
		r, err := begin(p.conn.server, spec)
		p.post(func() { s.spawned(r, err) })
	}()
}

func (s *slot) spawned(r *running, err error) {
	if err != nil {
		message := "The program cannot be started: " + err.Error() + "."
		s.ended(&protocol.Error{Code: protocol.CodeStartFailed, Message: message}, protocol.Evidence{})
		return
	}
	p := s.program
	s.running = r
	if p.spec.Plain {
		if p.requests[s.only.ID] == s.only {
			s.feed(r)
			return
		}
	}
	read := func(m *protocol.Message, err error) {
		p.post(func() {
			if s.running == r {
				s.read(m, err)
			}
		})
	}
	r.follow(func() { r.readLines(read) }, r.write, func() { p.post(func() { s.died(r) }) })
	r.send(&protocol.Message{
		Type: protocol.TypeHello, Versions: []int{protocol.Version}, Config: p.spec.Config,
		Scratch: p.conn.server.Scratch.Path(r.home),
		Bounds:  &protocol.Lines{Bytes: p.spec.Limits.LineBytes, Depth: protocol.DefaultLines.Depth},
	})
	if p.stopping || s.only != nil && p.requests[s.only.ID] != s.only { // stopped or cancelled meanwhile
		s.stop()
	}
}

// stop ends the slot. Its process, if there is one, is killed; died follows.
func (s *slot) stop() {
	switch {
	case s.running != nil:
		s.only = nil
		s.running.watch.kill(&doom{err: &protocol.Error{Code: protocol.CodeCancelled, Message: "The program was stopped."}})
	case s.state == slotWaiting:
		s.state = slotEnded
	}
}

// load returns how many requests and sessions the process has.
func (s *slot) load() int {
	n := len(s.sessions)
	for _, r := range s.requests {
		if r.session == nil {
			n++
		}
	}
	return n
}

func (s *slot) hasRoom() bool {
	return s.state == slotReady && s.running.watch.doom.Load() == nil && s.load() < s.capacity
}

// look looks at the clocks of the slot.
func (s *slot) look(now time.Time) {
	limits := s.program.spec.Limits
	switch {
	case s.state == slotWaiting && !now.Before(s.retryAt):
		s.spawn()
	case s.running == nil:
	case !s.eof.IsZero() && now.Sub(s.eof) > closeGrace && !s.running.child.HasEnded():
		s.breach(protocol.CodeBadLine, "The program has closed its output.")
	case s.state == slotStarting && now.Sub(s.began).Seconds() > limits.StartSeconds:
		s.running.watch.kill(&doom{
			err:      &protocol.Error{Code: protocol.CodeStartTimeout, Message: "The program was not ready in time."},
			evidence: protocol.Evidence{Limit: "startSeconds", Value: limits.StartSeconds, Seen: now.Sub(s.began).Seconds()},
		})
	default:
		s.lookAtRequests(now)
	}
}

func (s *slot) lookAtRequests(now time.Time) {
	limit := s.program.spec.Limits.CallSeconds
	for _, r := range s.requests {
		switch {
		case !r.cancelled.IsZero() && now.Sub(r.cancelled) > cancelGrace:
			s.retire("The program does not answer a cancel.")
		case r.clock(now).Seconds() > limit:
			s.running.watch.kill(overLimit("callSeconds", limit, r.clock(now).Seconds(), "The call has taken too long."))
		}
	}
}

// clock returns the time that a request has taken, without the time of its questions.
func (r *request) clock(now time.Time) time.Duration {
	if r.questions > 0 {
		return r.spent
	}
	return r.spent + now.Sub(r.running)
}

// breach kills a process that has broken the protocol: its further lines mean nothing.
func (s *slot) breach(code protocol.Code, message string) {
	s.running.watch.kill(&doom{
		err:      &protocol.Error{Code: protocol.CodeProtocol, Message: message},
		evidence: protocol.Evidence{Breach: code},
	})
}

// died is called when the process and all of its descendants have ended, and all of its output was read.
func (s *slot) died(r *running) {
	evidence := r.evidence()
	err := &protocol.Error{Code: protocol.CodeDied, Message: "The program has ended by itself."}
	if why := r.watch.doom.Load(); why != nil {
		err = why.err
		evidence.Limit, evidence.Value, evidence.Seen = why.evidence.Limit, why.evidence.Value, why.evidence.Seen
		evidence.Breach = why.evidence.Breach
	}
	if s.program.spec.Plain && (err.Code == protocol.CodeDied || err.Code == protocol.CodeLimit) {
		s.settle(r, evidence)
	}
	s.ended(err, evidence)
}

// ended settles the requests of the process, and starts the next process unless the slot ends.
func (s *slot) ended(err *protocol.Error, evidence protocol.Evidence) {
	p, wasReady := s.program, s.state == slotReady
	now := time.Now()
	for id, q := range p.questions {
		if q.request.slot == s {
			delete(p.questions, id)
		}
	}
	requests := s.requests
	for _, r := range requests {
		own := evidence
		own.Seconds, own.Shared = r.clock(now).Seconds(), len(requests) > 1
		p.fail(r, err, &own)
	}
	for session := range s.sessions {
		session.slot, session.busy = nil, false
		if session.opening {
			delete(p.sessions, session.name)
		}
	}
	for _, r := range requests {
		if r.Type == protocol.TypeClose {
			delete(p.sessions, r.Session)
		}
	}
	var dirs []string
	if s.running != nil {
		dirs = s.running.directories()
	}
	p.wipe(s.release, dirs...)
	s.running, s.requests, s.sessions = nil, nil, nil
	s.ends++
	s.next(now, wasReady, err, evidence)
}

// next decides whether another process follows the end of a process.
func (s *slot) next(now time.Time, wasReady bool, err *protocol.Error, evidence protocol.Evidence) {
	p := s.program
	_, alone := p.alone[s]
	switch {
	case alone:
		if s.only != nil && !wasReady {
			p.fail(s.only, err, &evidence)
		}
		delete(p.alone, s)
		s.state = slotEnded
		p.dispatch()
	case p.stopping:
		s.state = slotEnded
	case p.startID != 0 && !wasReady:
		p.failStart(err, &evidence)
		s.state = slotEnded
		p.stop(0)
	default:
		s.state, s.retryAt = slotWaiting, now.Add(pause(s.ends))
		if !wasReady && !p.hasReady() {
			p.failWaiting(err, &evidence)
		}
		if pause(s.ends) == 0 {
			s.spawn()
		}
	}
}

func (p *program) hasReady() bool {
	for _, s := range p.slots {
		if s.state == slotReady {
			return true
		}
	}
	return false
}

// cpu returns the processor time of the process itself; 0 if the process may have several calls at once.
func (s *slot) cpu() time.Duration {
	if s.capacity > 1 {
		return 0
	}
	return s.running.watch.ownCPU()
}

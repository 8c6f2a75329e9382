// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package runner

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/process"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// assign assigns a request to the process.
func (s *slot) assign(r *request) {
	if s.load() == 0 {
		s.running.watch.begin()
	}
	s.wire++
	r.slot, r.wire, r.running = s, s.wire, time.Now()
	params, err := s.openGateway(r)
	if err != nil { // for example too many open files
		s.requests[r.wire] = r
		s.running.watch.kill(&doom{err: &protocol.Error{Code: protocol.CodeBusy, Message: err.Error() + "."}})
		return
	}
	if err := s.giveDir(r); err != nil {
		// The process is not to blame, and cannot work without a directory. Its disk may be full.
		s.requests[r.wire] = r
		limit := float64(s.program.spec.Limits.ScratchBytes)
		s.running.watch.kill(overLimit("scratchBytes", limit, 0, "There is no scratch directory: "+err.Error()+"."))
		return
	}
	r.cpu = s.cpu()
	s.requests[r.wire] = r
	s.send(&protocol.Message{
		Type: r.Type, ID: r.wire, Session: r.Session, Seed: r.Seed, Method: r.Method, Params: params,
		Scratch: s.program.conn.server.Scratch.Path(r.dir),
	})
}

// giveDir sets the directory of a request: the directory of its session, or an empty one.
func (s *slot) giveDir(r *request) error {
	if r.session != nil && !r.session.opening {
		r.dir = r.session.dir
		return nil
	}
	if s.program.spec.Sandbox != nil { // it may write nowhere else
		r.dir = s.running.home
		if r.session != nil {
			r.session.dir, r.session.slot = r.dir, s
			s.sessions[r.session] = true
		}
		return nil
	}
	if n := len(s.dirs); n > 0 && r.session == nil {
		r.dir, s.dirs = s.dirs[n-1], s.dirs[:n-1]
		return nil
	}
	dir, err := s.program.conn.server.Scratch.Make()
	if err != nil {
		return err
	}
	r.dir = dir
	s.running.watch.setDir(dir, true)
	if r.session != nil {
		r.session.dir, r.session.slot = dir, s
		s.sessions[r.session] = true
	}
	return nil
}

// send sends a message to the process. A process that does not read is killed.
func (s *slot) send(m *protocol.Message) {
	if !s.running.send(m) {
		s.breach(protocol.CodeNotReading, "The program does not read.")
	}
}

// read handles a message of the process, or the end of its output.
func (s *slot) read(m *protocol.Message, err error) {
	var wrong *protocol.Error
	switch {
	case s.running.watch.doom.Load() != nil && (m == nil || m.Type != protocol.TypeResult):
		return // it is being killed; a result that it wrote before counts
	case errors.As(err, &wrong):
		s.breach(wrong.Code, wrong.Message)
		return
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.breach(protocol.CodeBadLine, "The program has ended within a line.")
		return
	case err != nil:
		s.eof = time.Now()
		return
	}
	switch m.Type {
	case protocol.TypeReady:
		s.ready(m)
	case protocol.TypeFailed:
		s.failed(m)
	case protocol.TypeAsk:
		s.ask(m)
	default:
		s.result(m)
	}
}

func (s *slot) ready(m *protocol.Message) {
	p := s.program
	switch {
	case s.state != slotStarting:
		s.breach(protocol.CodeDuplicateID, "The program is ready twice.")
		return
	case m.Version != protocol.Version:
		s.breach(protocol.CodeUnsupportedVersion,
			fmt.Sprintf("The program answers in version %d, which it was not offered.", m.Version))
		return
	}
	table, err := process.ReadTable()
	if err != nil {
		p.conn.server.Log.Error("The processes cannot be read.", "err", err)
	}
	s.running.watch.ready(table, m.Forks)
	s.state, s.cancels, s.capacity = slotReady, m.Cancels, p.spec.Concurrency
	if m.Concurrency > 0 {
		s.capacity = min(s.capacity, m.Concurrency)
	}
	if p.startID != 0 {
		evidence := s.running.live(time.Since(s.began))
		p.conn.send(&protocol.Message{
			Type: protocol.TypeStarted, ID: p.startID, Program: p.name, Value: m.Value, Evidence: &evidence,
		})
		p.startID = 0
	}
	if s.only != nil {
		s.assign(s.only)
		return
	}
	p.dispatch()
}

func (s *slot) failed(m *protocol.Message) {
	if s.state != slotStarting {
		s.breach(protocol.CodeDuplicateID, "The program was ready before it failed.")
		return
	}
	s.running.watch.kill(&doom{err: m.Error.Sanitize()})
}

// ask passes a question on to the caller.
func (s *slot) ask(m *protocol.Message) {
	r := s.requests[m.Call]
	switch {
	case r == nil:
		s.breach(protocol.CodeUnknownID, fmt.Sprintf("The program asks for call %d, which is not open.", m.Call))
		return
	case m.ID <= 0 || s.questions[m.ID]:
		s.breach(protocol.CodeDuplicateID, fmt.Sprintf("The program asks with the id %d, which is not new.", m.ID))
		return
	case len(s.questions) >= s.program.spec.Limits.Questions:
		s.breach(protocol.CodeTooManyQuestions, "The program has too many questions open.")
		return
	case !r.cancelled.IsZero():
		s.send(&protocol.Message{Type: protocol.TypeAnswer, ID: m.ID, Error: &protocol.Error{
			Code: protocol.CodeCancelled, Message: "The call was cancelled."}})
		return
	}
	s.questions[m.ID] = true
	if r.questions++; r.questions == 1 {
		r.spent += time.Since(r.running)
	}
	id := s.program.conn.question()
	s.program.questions[id] = &question{request: r, wire: m.ID}
	s.program.conn.send(&protocol.Message{
		Type: protocol.TypeAsk, ID: id, Program: s.program.name, Call: r.ID, Session: r.Session, Method: m.Method,
		Params: m.Params,
	})
}

// answered passes the caller's answer on.
func (s *slot) answered(q *question, m *protocol.Message) {
	delete(s.questions, q.wire)
	if q.request.questions--; q.request.questions == 0 {
		q.request.running = time.Now()
	}
	s.send(&protocol.Message{Type: protocol.TypeAnswer, ID: q.wire, Value: m.Value, Error: m.Error})
}

// result ends a request with the result of the process.
func (s *slot) result(m *protocol.Message) {
	r := s.requests[m.ID]
	if r == nil {
		s.breach(protocol.CodeUnknownID, fmt.Sprintf("The program answers request %d, which is not open.", m.ID))
		return
	}
	p := s.program
	for id, q := range p.questions { // questions that the program did not wait for
		if q.request == r {
			delete(p.questions, id)
			delete(s.questions, q.wire)
		}
	}
	delete(s.requests, m.ID)
	s.ends = 0
	evidence := s.running.live(r.clock(time.Now()))
	evidence.CPUSeconds = max(0, (s.cpu() - r.cpu).Seconds())
	evidence.Left = s.leave(r, m.Type == protocol.TypeError)
	answer := &protocol.Message{Type: m.Type, Value: m.Value, Evidence: &evidence}
	if m.Type == protocol.TypeError {
		answer.Value, answer.Error = nil, m.Error.Sanitize()
	}
	p.answer(r, answer)
	if s.only != nil && s.load() == 0 || spoils(answer) || s.load() == 0 && s.running.watch.zombies.Load() > maxZombies {
		s.retire("The process was replaced.")
	}
	p.dispatch()
}

// spoils reports whether an answer means that the process must not be used again: a process that is out of memory
// would fail all later requests.
func spoils(answer *protocol.Message) bool {
	return answer.Error != nil && answer.Error.Code == protocol.CodeOutOfMemory
}

// retire ends a process. Its other requests are not to blame: they fail with CodeDied.
func (s *slot) retire(message string) {
	s.ends = 0
	s.running.watch.kill(&doom{err: &protocol.Error{Code: protocol.CodeDied, Message: message}})
}

// leave frees the resources of a request, and returns the number of processes that the request left behind.
func (s *slot) leave(r *request, failed bool) int {
	server, session := s.program.conn.server, r.session
	ends := session == nil || r.Type == protocol.TypeClose || session.opening && failed
	if session != nil {
		session.busy, session.opening = false, false
	}
	if !ends {
		return 0
	}
	if session != nil {
		delete(s.sessions, session)
		delete(s.program.sessions, session.name)
	}
	left := 0
	if s.load() == 0 {
		left = s.running.watch.end(session != nil)
	}
	if r.dir == s.running.home { // it is removed with the process
		return left
	}
	if session == nil {
		if err := server.Scratch.Clear(r.dir); err == nil {
			s.dirs = append(s.dirs, r.dir)
			return left
		}
	}
	s.running.watch.setDir(r.dir, false)
	s.program.wipe(func() {}, r.dir)
	return left
}

// cancel sends the process a cancel of a request, or ends the process if it does not handle cancels.
func (s *slot) cancel(r *request) {
	if r.session != nil {
		// The caller does not know the state of the session: it ends.
		s.retire("A request of the session was cancelled.")
		return
	}
	if !s.cancels {
		s.retire("A request was cancelled.")
		return
	}
	r.cancelled = time.Now()
	s.send(&protocol.Message{Type: protocol.TypeCancel, ID: r.wire})
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// server executes the next operation, or restarts.
func (m *Model) server(x *successors) {
	s := x.From
	m.restart(x)
	if s.Alive == 0 {
		return
	}
	next := m.nextQueued(s)
	if next < 0 {
		return
	}
	op := s.Queue[next]
	x.Copy().execute(next)
	x.Step(executed, op.Type, op.Step, op.Chunk)
	if s.Failures > 0 && op.Type != saveState {
		t := x.Copy()
		t.Failures--
		t.Queue[next].Status = failed
		x.Fault(executed, op.Type, op.Step, op.Chunk|operationFails)
	}
}

// restart restarts the server, which forgets its requests and, unless Resurrect is set, the model.
func (m *Model) restart(x *successors) {
	if x.From.Restarts == 0 {
		return
	}
	t := x.Copy()
	t.Restarts--
	t.forget()
	t.Alive = 0
	if m.config.Resurrect {
		t.Alive = 1
		t.Update, t.Updates = t.Saved, t.SavedSteps
	}
	if !m.config.ReuseRequestIDs {
		t.Index = [4]uint8{forgotten, forgotten, forgotten, forgotten}
	}
	x.Fault(serverRestart)
}

// forget drops the gradient, the queue and the sequence numbers of the model.
func (s *State) forget() {
	s.Gradient, s.Queue, s.Queued, s.Seen = [steps * chunks]uint8{}, [9]Operation{}, 0, [14]uint8{}
}

// nextQueued returns the operation to execute, or -1 if there is none. The order of chunks does not change their sum,
// so a chunk need not wait for the chunks before it.
func (m *Model) nextQueued(s *State) int {
	best := -1
	for i := range int(s.Queued) {
		if s.Queue[i].Status != queued {
			continue
		}
		if best < 0 || (!m.config.ByArrival && s.Queue[i].Number < s.Queue[best].Number) {
			best = i
		}
		if m.config.ByArrival {
			break
		}
	}
	return best
}

// arrive puts a submitted operation into the queue, and returns its position there.
func (m *Model) arrive(s *State, op Operation, number uint8) uint8 {
	op.Number, op.Status = number, queued
	if m.config.Dedupe && s.Seen[number] != 0 {
		return s.Seen[number] - 1
	}
	if int(s.Queued) == len(s.Queue) {
		return noAnswer
	}
	s.Queue[s.Queued] = op
	s.Seen[number] = s.Queued + 1
	s.Queued++
	return s.Queued - 1
}

// execute executes a queued operation.
func (s *State) execute(i int) {
	op := &s.Queue[i]
	op.Status = succeeded
	switch op.Type {
	case forwardBackward:
		s.Gradient[op.Step*chunks+op.Chunk]++
	case optimStep:
		if int(s.Updates) < len(s.Update) {
			s.Update[s.Updates] = s.accumulated(op.Step)
		} else {
			s.violate(appliedTwice)
		}
		s.Updates++
		s.Gradient = [steps * chunks]uint8{}
	case saveState:
		s.Saved, s.SavedSteps, s.HasSave = s.Update, op.Step+1, 1
		s.checkSave(op.Step + 1)
	}
}

// accumulated returns the content of the gradient at the update of a step.
func (s *State) accumulated(step uint8) uint8 {
	count, foreign, twice := 0, false, false
	for i, n := range s.Gradient {
		if n > 0 {
			count++
			foreign = foreign || uint8(i)/chunks != step
		}
		twice = twice || n > 1
	}
	switch {
	case count == 0:
		return empty
	case twice:
		return doubled
	case count == chunks && !foreign:
		return exact(step)
	}
	return mixed
}

// checkSave checks that a saved state has exactly the updates of its steps.
func (s *State) checkSave(n uint8) {
	for u := range n {
		switch {
		case u >= s.Updates || s.Update[u] == empty:
			s.violate(skipped)
		case s.Update[u] == doubled:
			s.violate(appliedTwice)
		case s.Update[u] != exact(u):
			s.violate(partialSaved)
		}
	}
	if s.Updates > n {
		s.violate(appliedTwice)
	}
}

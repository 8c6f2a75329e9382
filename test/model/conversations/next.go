// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package conversations

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The kinds of transitions.
const (
	asked uint8 = iota
	answered
	futureLost
	workerDies
	learnerDies
	replayed
	learnerStarts
	limited
	finished
)

type successors = engine.Successors[State]

// Next implements engine.Model. The sampling session, which the learner keeps alive, survives the deaths of worker and
// learner: the next learner adopts the session.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if s.Ended > 0 {
		return
	}
	x := engine.NewSuccessors(s, emit)
	if s.Learner == 0 {
		x.Copy().Learner = 1
		x.Step(learnerStarts)
	} else if s.LearnerDeaths > 0 {
		t := x.Copy()
		t.Learner, t.LearnerDeaths = 0, t.LearnerDeaths-1
		x.Fault(learnerDies)
	}
	if s.Worker == 0 {
		if s.Learner == 1 { // A worker needs a lease from the learner.
			x.Copy().Worker = 1
			x.Step(replayed)
		}
		return
	}
	if s.WorkerDeaths > 0 {
		m.workerDies(x)
	}
	left := false
	for c := range uint8(conversations) {
		for turn := range uint8(turns) {
			switch {
			case s.Open[c][turn] == 0:
				m.ask(x, c, turn)
			case s.Got[c][turn] == 0:
				m.answer(x, c, turn)
			}
			left = left || s.Got[c][turn] == 0
		}
	}
	if !left {
		m.end(x, 1, finished)
	}
}

// workerDies loses the worker's knowledge. The session's knowledge stays.
func (m *Model) workerDies(x *successors) {
	t := x.Copy()
	t.Worker, t.WorkerDeaths = 0, t.WorkerDeaths-1
	t.Arrived, t.Last = 0, 0
	t.Open, t.Got = [conversations][turns]uint8{}, [conversations][turns]uint8{}
	x.Fault(workerDies)
}

// ask makes a request of a conversation, or ends an episode that has no request left. A conversation asks once it has
// the previous reply, because the prompt contains this reply. Requests that are open at once arrive in any order.
func (m *Model) ask(x *successors, c, turn uint8) {
	s := x.From
	if turn > 0 && s.Got[c][turn-1] == 0 && !m.config.TwoOpen {
		return
	}
	if m.config.Requests > 0 && s.Arrived == m.config.Requests {
		m.end(x, 2, limited)
		return
	}
	t, id := x.Copy(), m.number(s, c, prompts[c][turn])
	t.Open[c][turn] = 1 + id
	t.Arrived++
	for _, open := range s.Open {
		if open[0] == 1+id || open[1] == 1+id {
			t.Broken = uint8(shared)
		}
	}
	if known := s.Known[id]; known > 0 && known != 1+prompts[c][turn] {
		t.Broken = uint8(reused)
	}
	x.Step(asked, c, prompts[c][turn], id)
}

// number is the number of a request of a conversation.
func (m *Model) number(s *State, c, prompt uint8) uint8 {
	if m.config.ByArrival {
		return s.Arrived
	}
	repeat := uint8(0)
	for other := range uint8(conversations) {
		for turn, open := range s.Open[other] {
			if open > 0 && (other == c || !m.config.Conversation) && prompts[other][turn] == prompt {
				repeat++
			}
		}
	}
	id := uint8(0)
	if m.config.Conversation {
		id = c
	}
	if id *= 2; m.config.Prompt {
		id += prompt
	}
	if id *= 4; m.config.Repeat {
		id += repeat
	}
	if m.config.ByWorker && int(s.WorkerDeaths) < m.config.WorkerDeaths {
		id += seeds
	}
	return id
}

// answer delivers the sample of an open request. The sample is bought unless the session has it. A lost future is asked
// for again under the next counter, which is a part of the number but not of the seed.
func (m *Model) answer(x *successors, c, turn uint8) {
	s := x.From
	id := s.Open[c][turn] - 1
	buy := func() *State {
		t := x.Copy()
		if t.Known[id] == 0 || s.Lost[id] == 1 {
			t.Paid++
		}
		t.Known[id], t.Lost[id] = 1+prompts[c][turn], 0
		return t
	}
	t := buy()
	t.Got[c][turn] = 1 + id%seeds
	t.Last = c
	x.Step(answered, c, id)
	if s.LostFutures > 0 {
		t = buy()
		t.LostFutures--
		t.Lost[id] = 1
		x.Fault(futureLost, id)
	}
}

// end ends the episode and compares its training data with the data of an undisturbed episode, whose conversations are
// played one after the other.
func (m *Model) end(x *successors, how, kind uint8) {
	s, t := x.From, x.Copy()
	t.Ended = how
	if how == 2 && !m.config.KeepLimited { // left out, in whatever order the requests were made
		x.Step(kind)
		return
	}
	if t.Got != m.undisturbed() || m.config.StopOfLast && s.Last != conversations-1 {
		t.Broken = uint8(notReproducible)
	}
	spent := uint8(m.config.LostFutures) - s.LostFutures
	if s.Paid > conversations*turns+spent && t.Broken == 0 {
		t.Broken = uint8(boughtTwice)
	}
	x.Step(kind)
}

// undisturbed are the samples of an episode whose conversations are played one after the other.
func (m *Model) undisturbed() [conversations][turns]uint8 {
	s := m.Init()
	for c := range uint8(conversations) {
		for turn := range uint8(turns) {
			if m.config.Requests > 0 && s.Arrived == m.config.Requests {
				return s.Open
			}
			s.Open[c][turn] = 1 + m.number(&s, c, prompts[c][turn])
			s.Arrived++
		}
	}
	return s.Open
}

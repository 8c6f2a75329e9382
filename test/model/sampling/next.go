// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The kinds of transitions.
const (
	sampled uint8 = iota
	replyLost
	futureLost
	workerCrash
	workerReplaced
	environmentFault
	finished
	sessionExpired
	sessionMade
)

type successors = engine.Successors[State]

// restart begins the member again, in the same try or another.
func (s *State) restart() {
	s.Turn, s.Post = 0, 0
	s.Got = [turns]uint8{}
}

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if s.Finished == 1 {
		return
	}
	x := engine.NewSuccessors(s, emit)
	if s.Session == 0 && m.config.LearnerHeartbeat {
		t := x.Copy()
		t.Session = 1
		t.Key = [turns][tries][posts]uint8{} // A new session knows no samples that were paid for.
		x.Step(sessionMade)
	}
	if s.Worker == 0 {
		m.replaceWorker(x)
		return
	}
	if s.Crashes > 0 {
		t := x.Copy()
		t.Crashes--
		t.Worker = 0
		x.Fault(workerCrash)
	}
	switch {
	case s.Turn == turns:
		m.finish(x)
	case s.Session == 1:
		m.sample(x)
	}
}

// replaceWorker lets another worker take the lease. Until then only the learner keeps the session alive.
func (m *Model) replaceWorker(x *successors) {
	t := x.Copy()
	t.Worker = 1
	if m.config.TryOnCrash && t.Try < tries-1 {
		t.Try++
	}
	t.restart()
	x.Step(workerReplaced)
	if x.From.Session == 1 && !m.config.LearnerHeartbeat {
		x.Copy().Session = 0
		x.Fault(sessionExpired)
	}
}

// finish ends the episode, or repeats it because of a fault of the environment.
func (m *Model) finish(x *successors) {
	s, t := x.From, x.Copy()
	t.Finished = 1
	for _, got := range t.Got {
		if m.config.EnvironmentFaults == 0 && got != 1 {
			t.Broken = uint8(notReproducible)
		}
	}
	x.Step(finished)
	if s.EnvironmentFaults > 0 && s.Try < tries-1 {
		t = x.Copy()
		t.EnvironmentFaults--
		t.Try++
		t.restart()
		x.Fault(environmentFault)
	}
}

// sample asks for the sample of this turn. The reply or the future may be lost.
func (m *Model) sample(x *successors) {
	s := x.From
	key := s.Key[s.Turn][s.Try][s.Post]
	if key == lost {
		m.askAnew(x)
		return
	}
	pay := func() *State {
		t := x.Copy()
		if key == unknown {
			t.Key[s.Turn][s.Try][s.Post] = paid
			t.Paid++
		}
		return t
	}
	t := pay()
	t.Got[s.Turn] = 1 + s.Try
	t.Turn++
	t.Post = 0
	x.Step(sampled, s.Turn, s.Try, s.Post)
	if s.LostReplies > 0 {
		pay().LostReplies--
		x.Fault(replyLost, s.Turn, s.Try, s.Post)
	}
	if s.LostFutures > 0 {
		t = pay()
		t.LostFutures--
		t.Key[s.Turn][s.Try][s.Post] = lost
		x.Fault(futureLost)
	}
}

// askAnew requests a sample again after its future is permanently lost.
func (m *Model) askAnew(x *successors) {
	s, t := x.From, x.Copy()
	switch {
	case m.config.PostInID && s.Post < posts-1:
		t.Post++
	case m.config.TryOnLoss && s.Try < tries-1:
		t.Try++
		t.restart()
	default:
		return
	}
	x.Step(futureLost, 1)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The kinds of transitions.
const (
	asked uint8 = iota
	sampled
	delivered
	left
	refused
	gaveUp
	workerDies
	replayed
	finished
)

type successors = engine.Successors[State]

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if s.Ended > 0 {
		return
	}
	x := engine.NewSuccessors(s, emit)
	if s.Worker == 0 {
		x.Copy().Worker = 1
		x.Step(replayed)
		return
	}
	if s.WorkerDeaths > 0 {
		t := x.Copy()
		t.forget()
		t.Worker, t.WorkerDeaths = 0, t.WorkerDeaths-1
		x.Fault(workerDies)
	}
	done := true
	for p := range uint8(parts) {
		done = done && s.Got[p][1] > 0
		m.part(x, p)
	}
	for i, c := range s.Calls {
		if c.Content > 0 && c.Sampled == 0 {
			t := x.Copy()
			t.Calls[i].Sampled = 1
			t.buy(c.ID)
			x.Step(sampled, uint8(i))
		}
	}
	if done {
		m.end(x, finished, 0)
	}
}

// forget loses the worker's knowledge of the episode. Samples stay known.
func (s *State) forget() {
	s.Got, s.Waits, s.Call = [parts][2]uint8{}, [parts]uint8{}, [parts]uint8{}
	s.Began, s.Calls = [parts]uint8{}, [calls]call{}
}

func (s *State) buy(id uint8) {
	if s.Known&(1<<id) == 0 {
		s.Known |= 1 << id
		s.Paid++
	}
}

// part lets a part ask, take its reply, or lose its client.
func (m *Model) part(x *successors, p uint8) {
	s := x.From
	if s.Got[p][1] > 0 {
		return
	}
	if s.Waits[p] == 0 || s.Call[p] == 0 {
		m.ask(x, p)
		if s.Waits[p] > 0 {
			m.giveUp(x, p)
		}
		return
	}
	i := s.Call[p] - 1
	if s.Calls[i].Sampled > 0 {
		t := x.Copy()
		t.Calls[i].Held, t.Calls[i].Delivered = 0, 1
		t.Waits[p], t.Call[p] = 0, 0
		turn := 0
		if s.Got[p][0] > 0 {
			turn = 1
		}
		t.Got[p][turn] = 1 + s.Calls[i].ID
		x.Step(delivered, p, i)
	}
	for kind, budget := range map[uint8]uint8{left: s.Leaves, refused: s.Outages} {
		if budget == 0 {
			continue
		}
		t := x.Copy()
		t.Calls[i].Held, t.Call[p] = 0, 0
		if kind == left {
			t.Leaves--
		} else {
			t.Outages--
		}
		x.Fault(kind, p)
	}
}

// content is 1 plus the content of a part's next request.
func (m *Model) content(s *State, p uint8) uint8 {
	switch {
	case s.Got[p][0] > 0:
		return 2 + s.Got[p][0]
	case m.config.Equal:
		return 1
	default:
		return 1 + p
	}
}

// ask makes a request of a part, or continues an equal request whose client has gone.
func (m *Model) ask(x *successors, p uint8) {
	s, t := x.From, x.Copy()
	content, repeat, at := m.content(s, p), uint8(0), -1
	for i, c := range s.Calls {
		switch {
		case c.Content == 0:
			if at < 0 {
				at = i
				t.Calls[i] = call{Content: content, ID: m.id(content, repeat), Held: 1}
			}
		case c.Content == content && at < 0:
			if c.Delivered == 0 && (c.Held == 0 && m.config.Adopt || m.config.AdoptOpen) {
				at = i
				t.Calls[i].Held = 1
			}
			repeat++
		}
	}
	if t.Began[p] == 0 {
		t.Began[p] = 1 + max(s.Began[0], s.Began[1])
	}
	t.Waits[p], t.Call[p] = 1, 1+uint8(at)
	for other, waiting := range t.Call {
		if uint8(other) != p && waiting > 0 && t.Calls[waiting-1].ID == t.Calls[at].ID {
			t.Broken = uint8(shared)
		}
	}
	x.Step(asked, p, uint8(at))
}

// id identifies a request; its seed and number follow from the id.
func (m *Model) id(content, repeat uint8) uint8 {
	if !m.config.Repeat {
		repeat = 0
	}
	return (content-1)*4 + repeat
}

// giveUp ends the agent while a request is unanswered.
func (m *Model) giveUp(x *successors, p uint8) {
	if !m.config.PlayAgain {
		m.end(x, gaveUp, p)
		return
	}
	t := x.Copy()
	t.forget()
	if m.config.NextTry {
		t.Try++
	}
	x.Step(gaveUp, p)
}

// end ends the episode and compares it with an undisturbed episode, whose parts are played one after the other.
func (m *Model) end(x *successors, kind, p uint8) {
	t := x.Copy()
	t.Ended = 1
	switch want := m.undisturbed(); {
	case t.Try > 0 || m.trained(t) != m.trained(&want):
		t.Broken = uint8(notReproducible)
	case t.Paid > 2*parts:
		t.Broken = uint8(boughtTwice)
	}
	x.Step(kind, p)
}

// trained returns the branches of an episode in the order of their numbers. A request whose reply no part has received
// is a branch of its own.
func (m *Model) trained(s *State) [calls]uint16 {
	var list [calls]uint16
	order := []int{0, 1}
	if s.Began[0] > s.Began[1] {
		order = []int{1, 0}
	}
	n := 0
	for _, p := range order {
		list[n] = uint16(s.Got[p][0])<<8 | uint16(s.Got[p][1])
		n++
	}
	for _, c := range s.Calls {
		if c.Content > 0 && c.Delivered == 0 {
			list[n] = uint16(c.ID+1) << 8
			n++
		}
	}
	if m.config.ByDigest {
		slices.Sort(list[:n])
	}
	return list
}

// undisturbed returns the last state of an episode whose parts are played one after the other.
func (m *Model) undisturbed() State {
	s := m.Init()
	n := 0
	for p := range uint8(parts) {
		for turn := range 2 {
			content, repeat := m.content(&s, p), uint8(0)
			for _, c := range s.Calls {
				if c.Content == content {
					repeat++
				}
			}
			s.Calls[n] = call{Content: content, ID: m.id(content, repeat), Sampled: 1, Delivered: 1}
			s.Got[p][turn] = 1 + s.Calls[n].ID
			n++
		}
		s.Began[p] = 1 + p
	}
	return s
}

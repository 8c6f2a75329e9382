// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package suspects

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The kinds of transitions.
const (
	leased uint8 = iota
	begun
	ended
	poisoned
	reported
	submitted
	died
	silenced
	heard
)

type successors = engine.Successors[State]

const all = 1<<members - 1

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if m.Done(s) {
		return
	}
	x := engine.NewSuccessors(s, emit)
	for w := range workers {
		m.lease(x, w)
		for g := range groups {
			if s.Workers[w].Plays[g].Leased > 0 {
				m.play(x, w, g)
			}
		}
		m.fail(x, w)
	}
}

func (m *Model) isSuspect(c *counts) bool {
	return m.config.Suspect && (c.Deaths >= m.config.SuspectAfter || c.Alone != [members]uint8{})
}

// lease leases a group to a worker if no worker holds the group. Suspects go to the first worker, unless it is silent.
func (m *Model) lease(x *successors, w int) {
	s := x.From
	own := &s.Workers[w]
	if own.Silent == 1 {
		return
	}
	playing := uint8(0)
	for _, p := range own.Plays {
		playing = max(playing, p.Leased)
	}
	for g := range groups {
		c := &s.Groups[g]
		if c.Known == 1 || m.isHeld(s, g) {
			continue
		}
		how := uint8(1)
		if m.isSuspect(c) {
			how = 2
			if w > 0 && s.Workers[0].Silent == 0 {
				continue
			}
		}
		if !m.config.Beside && (playing == 2 || how == 2 && playing > 0) {
			continue
		}
		t := x.Copy()
		t.Workers[w].Plays[g] = play{Leased: how}
		x.Step(leased, uint8(w), uint8(g), how)
	}
}

// isHeld reports whether a worker that is not silent has a group.
func (m *Model) isHeld(s *State, g int) bool {
	for _, w := range s.Workers {
		if w.Silent == 0 && w.Plays[g].Leased > 0 {
			return true
		}
	}
	return false
}

// play begins and ends members, reports and submits.
func (m *Model) play(x *successors, w, g int) {
	s, p := x.From, x.From.Workers[w].Plays[g]
	faulty := s.Groups[g].Faulty
	for i := range members {
		bit := uint8(1) << i
		switch {
		case p.Done&bit > 0:
		case p.Begun&bit > 0:
			if g == poisonGroup && i == poisonMember {
				t := x.Copy()
				m.end(t, w)
				if t.Poisoned++; t.Poisoned > m.config.SuspectAfter+m.config.FaultAfter+m.config.Deaths+m.config.Silences {
					t.Broken = uint8(tooManyDeaths)
				}
				x.Step(poisoned, uint8(w), uint8(g), uint8(i))
				continue
			}
			x.Copy().Workers[w].Plays[g].Done |= bit
			x.Step(ended, uint8(w), uint8(g), uint8(i))
		case p.Leased == 2 && p.Done&(bit-1) != bit-1, p.Leased == 2 && m.config.Permits && uint8(i) > p.Permitted:
			// The members of a suspect are played in turn.
		case p.Leased == 2 && faulty&bit > 0:
			x.Copy().Workers[w].Plays[g].Done |= bit
			x.Step(ended, uint8(w), uint8(g), uint8(i))
		default:
			x.Copy().Workers[w].Plays[g].Begun |= bit
			x.Step(begun, uint8(w), uint8(g), uint8(i))
		}
	}
	if s.Workers[w].Silent == 0 {
		m.report(x, w, g)
	}
}

// report tells the learner how many members are done, and submits a group once all its members are done.
func (m *Model) report(x *successors, w, g int) {
	p := x.From.Workers[w].Plays[g]
	if p.Leased == 2 {
		if done := inTurn(p.Done); done > p.Reported {
			t := x.Copy()
			t.Workers[w].Plays[g].Reported, t.Workers[w].Plays[g].Permitted = done, min(done, members-1)
			x.Step(reported, uint8(w), uint8(g), done)
		}
	}
	if p.Done == all {
		t := x.Copy()
		t.Groups[g] = counts{Known: 1, Faulty: x.From.Groups[g].Faulty}
		for v := range workers {
			t.Workers[v].Plays[g] = play{}
		}
		x.Step(submitted, uint8(w), uint8(g))
	}
}

// inTurn counts the done members before the first member that is not done.
func inTurn(done uint8) (n uint8) {
	for n < members && done&(1<<n) > 0 {
		n++
	}
	return n
}

// end ends a worker's process, which the learner notices. The next process is another worker.
func (m *Model) end(t *State, w int) {
	if t.Workers[w].Silent == 0 {
		m.count(t, w, false)
	}
	t.Workers[w] = worker{}
	for g := range groups { // Without its mark, a counted death is never taken back.
		t.Groups[g].Marks &^= 1 << w
		t.Groups[g].MarkedAlone[w] = 0
	}
}

// count counts a death for the groups that the worker had. The death of a worker that is cut off is marked, so that it
// can be taken back.
func (m *Model) count(t *State, w int, mark bool) {
	for g := range groups {
		p, c := t.Workers[w].Plays[g], &t.Groups[g]
		if p.Leased == 0 || c.Known == 1 {
			continue
		}
		as := uint8(0)
		if p.Leased == 1 {
			c.Deaths = min(c.Deaths+1, most)
		} else if p.Reported < members {
			as = 1 + p.Reported
			if c.Alone[p.Reported]++; c.Alone[p.Reported] >= m.config.FaultAfter {
				c.Alone[p.Reported] = m.config.FaultAfter
				c.Faulty |= 1 << p.Reported
				if g != poisonGroup || p.Reported != poisonMember {
					t.Broken = uint8(wrongFault)
				}
			}
		}
		if mark {
			c.Marks |= 1 << w
			c.MarkedAlone[w] = as
		}
	}
}

// fail kills a worker for reasons of its own, or cuts it off until it comes back.
func (m *Model) fail(x *successors, w int) {
	s := x.From
	plays := s.Workers[w] != (worker{})
	if s.Deaths > 0 && plays {
		t := x.Copy()
		t.Deaths--
		m.end(t, w)
		x.Fault(died, uint8(w))
	}
	if s.Workers[w].Silent == 1 {
		t := x.Copy()
		m.hear(t, w)
		x.Step(heard, uint8(w))
		return
	}
	if s.Silences > 0 && plays {
		t := x.Copy()
		t.Silences--
		m.count(t, w, true)
		t.Workers[w].Silent = 1
		x.Fault(silenced, uint8(w))
	}
}

// hear brings back a worker that the learner took for dead. The worker stops groups that others have by now.
func (m *Model) hear(t *State, w int) {
	t.Workers[w].Silent = 0
	for g := range groups {
		c := &t.Groups[g]
		if c.Marks&(1<<w) > 0 {
			if as := c.MarkedAlone[w]; as > 0 && c.Alone[as-1] > 0 {
				c.Alone[as-1]--
			} else if as == 0 && c.Deaths > 0 {
				c.Deaths--
			}
		}
		c.Marks &^= 1 << w
		c.MarkedAlone[w] = 0
		if c.Known == 1 || t.Workers[1-w].Silent == 0 && t.Workers[1-w].Plays[g].Leased > 0 {
			t.Workers[w].Plays[g] = play{}
		}
	}
}

// Label implements engine.Model.
func (m *Model) Label(act engine.Act, _, to *State) string {
	switch act.Kind {
	case leased:
		return fmt.Sprintf("worker %d is leased group %d%s", act.A, act.B, map[uint8]string{2: " alone"}[act.C])
	case begun:
		return fmt.Sprintf("worker %d begins member %d of group %d", act.A, act.C, act.B)
	case ended:
		return fmt.Sprintf("worker %d ends member %d of group %d", act.A, act.C, act.B)
	case poisoned:
		return fmt.Sprintf("worker %d DIES of member %d of group %d; counted: %v", act.A, act.C, act.B, to.Groups)
	case reported:
		return fmt.Sprintf("worker %d reports %d members of group %d", act.A, act.C, act.B)
	case submitted:
		return fmt.Sprintf("worker %d submits group %d", act.A, act.B)
	case died:
		return fmt.Sprintf("worker %d DIES for a reason of its own; counted: %v", act.A, to.Groups)
	case silenced:
		return fmt.Sprintf("worker %d is CUT OFF; counted: %v", act.A, to.Groups)
	}
	return fmt.Sprintf("worker %d is heard of again", act.A)
}

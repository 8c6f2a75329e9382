// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
)

// The kinds of transitions.
const (
	replaced uint8 = iota
	died
	claimed
	read
	lookedFor
	recorded
	executed
	answeredBy
	completed
)

type successors = engine.Successors[State]

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if m.Done(s) {
		return
	}
	x := engine.NewSuccessors(s, emit)
	m.replace(x)
	for i := range attempts {
		m.run(x, i)
	}
}

// replace starts the next attempt, because the newest learner has died or has been frozen for too long.
func (m *Model) replace(x *successors) {
	n := newest(x.From)
	phase := x.From.Learners[n].Phase
	if n == attempts-1 || phase == complete {
		return
	}
	x.Copy().Learners[n+1] = learner{Phase: started, Left: requests}
	if phase == dead {
		x.Step(replaced, uint8(n+1))
		return
	}
	x.Fault(replaced, uint8(n+1))
	x.Copy().Learners[n].Phase = dead
	x.Fault(died, uint8(n))
}

// run makes the next step of a learner.
func (m *Model) run(x *successors, i int) {
	l := x.From.Learners[i]
	switch {
	case l.Phase == started && m.config.ClaimFirst, l.Phase == half && !m.config.ClaimFirst:
		m.claim(x, i)
	case l.Phase == started, l.Phase == half:
		m.read(x, i)
	case l.Phase == ready && l.Left == 0 && i == newest(x.From):
		x.Copy().Learners[i].Phase = complete
		x.Step(completed, uint8(i))
	case l.Phase == ready && l.Left == 0:
		m.look(x, i, fenced)
	case l.Phase >= ready && l.Phase <= answered:
		m.request(x, i)
	}
}

// request makes the next step of a learner's request.
func (m *Model) request(x *successors, i int) {
	l := x.From.Learners[i]
	switch {
	case l.Phase == ready && m.config.LookFirst:
		m.look(x, i, looked)
	case (l.Phase == ready || l.Phase == looked) && m.config.Grant:
		m.record(x, i, 1, granted)
	case l.Phase == granted && m.config.Look:
		m.look(x, i, allowed)
	case l.Phase <= allowed:
		t := x.Copy()
		t.Executed++
		t.Learners[i].Phase = sent
		x.Step(executed, uint8(i))
	case l.Phase == sent:
		t := x.Copy()
		t.Learners[i].Own, t.Learners[i].Left, t.Learners[i].Phase = l.Own+1, l.Left-1, answered
		x.Step(answeredBy, uint8(i))
	case l.Phase == answered:
		m.record(x, i, 0, ready)
	}
}

// claim writes the claim of an attempt.
func (m *Model) claim(x *successors, i int) {
	t := x.Copy()
	t.Learners[i].Claimed = 1
	t.Learners[i].Phase++
	if t.Learners[i].Phase > half {
		t.Learners[i].Phase = ready
	}
	x.Step(claimed, uint8(i))
}

// read reads the newest record of the earlier attempts.
func (m *Model) read(x *successors, i int) {
	t := x.Copy()
	for before := i - 1; before >= 0; before-- {
		if r := t.Records[before]; r.Written > 0 {
			t.Learners[i].Earlier, t.Learners[i].Unconfirmed = r.Earlier+r.Own, r.Unconfirmed+r.Granted-r.Own
			break
		}
	}
	t.Learners[i].Phase++
	x.Step(read, uint8(i))
}

// look looks for a higher claim.
func (m *Model) look(x *successors, i int, next uint8) {
	t := x.Copy()
	t.Learners[i].Phase = next
	for _, other := range x.From.Learners[i+1:] {
		if other.Claimed > 0 {
			t.Learners[i].Phase = fenced
		}
	}
	x.Step(lookedFor, uint8(i))
}

// record writes the record of an attempt, which grants the given number of further requests.
func (m *Model) record(x *successors, i int, more, next uint8) {
	t := x.Copy()
	l := &t.Learners[i]
	t.Records[i] = record{Written: 1, Earlier: l.Earlier, Unconfirmed: l.Unconfirmed, Own: l.Own, Granted: l.Own + more}
	l.Phase = next
	x.Step(recorded, uint8(i), more)
}

// Label implements engine.Model.
func (*Model) Label(act engine.Act, _, to *State) string {
	switch act.Kind {
	case replaced:
		return fmt.Sprintf("learner %d begins", act.A)
	case died:
		return fmt.Sprintf("learner %d DIES", act.A)
	case claimed:
		return fmt.Sprintf("learner %d claims the run", act.A)
	case read:
		l := to.Learners[act.A]
		return fmt.Sprintf("learner %d reads that %d requests were answered and %d are unconfirmed", act.A, l.Earlier,
			l.Unconfirmed)
	case lookedFor:
		return fmt.Sprintf("learner %d looks for a higher claim; its phase is %d", act.A, to.Learners[act.A].Phase)
	case recorded:
		return fmt.Sprintf("learner %d records its spending and %d requests to come", act.A, act.B)
	case executed:
		return fmt.Sprintf("the endpoint executes a request of learner %d; %d in all", act.A, to.Executed)
	case answeredBy:
		return fmt.Sprintf("learner %d has an answer", act.A)
	}
	return fmt.Sprintf("learner %d completes the run", act.A)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// Model is the model. Its parts decide the possible next actions of each process.
type Model struct {
	rules *rules
	slots *slots

	opening opening
	loop    loop
	commit  commit
	pool    pool
	faults  faults
	final   final

	costs Costs
}

// Costs are the most that any state has seen of each cost.
type Costs struct{ BoughtTwice, Discarded, BoughtSuperseded uint8 }

// New returns the model of a configuration.
func New(config Config) *Model {
	shared := &rules{config: config, content: newContent()}
	of := &slots{shared}
	base := &resume{of}
	m := &Model{
		rules: shared, slots: of, opening: opening{base}, loop: loop{base}, commit: commit{base}, pool: pool{of},
		faults: faults{shared}, final: final{slots: of},
	}
	if config.EnvironmentFaults == 0 {
		m.final.expected = of.undisturbed()
	} else {
		m.final.outcomes = map[string]bool{}
	}
	return m
}

// Costs returns the highest costs of the states that were checked.
func (m *Model) Costs() Costs { return m.costs }

// Outcomes returns the number of final lineages that faults of the environment lead to.
func (m *Model) Outcomes() int { return len(m.final.outcomes) }

// Init implements engine.Model.
func (m *Model) Init() State {
	c := m.rules.config
	s := State{
		SecondLearners: uint8(c.SecondLearners), WorkerCrashes: uint8(c.WorkerCrashes), Failures: uint8(c.Failures),
		EnvironmentFaults: uint8(c.EnvironmentFaults), Expiries: uint8(c.Expiries), SamplerExpiries: uint8(c.SamplerExpiries),
		Suspensions: uint8(c.Suspensions), Restarts: uint8(c.Restarts),
	}
	s.Samplers.add(m.rules.samplers.of(sampler{}))
	if c.Foreign {
		s.Checkpoints.add(m.rules.checkpoints.of(checkpoint{
			Attempt: 1, Step: uint8(c.Steps - 1), Cursor: 1, Lineage: foreignLineage, Weights: foreignLineage, Foreign: true,
		}))
	}
	return s
}

// Check implements engine.Model.
func (m *Model) Check(s *State) engine.Code {
	m.costs.BoughtTwice = max(m.costs.BoughtTwice, s.BoughtTwice)
	m.costs.Discarded = max(m.costs.Discarded, s.Discarded)
	m.costs.BoughtSuperseded = max(m.costs.BoughtSuperseded, s.BoughtSuperseded)
	return engine.Code(s.Broken)
}

// Done implements engine.Model.
func (m *Model) Done(s *State) bool { return s.Complete == 1 }

// CodeName implements engine.Model.
func (m *Model) CodeName(code engine.Code) string { return codeNames[code] }

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if s.Complete == 1 {
		return
	}
	x := engine.NewSuccessors(s, func(act engine.Act, fault bool, to *State) {
		m.slots.absorb(to)
		if m.rules.config.Workers == maxWorkers {
			to.sortWorkers()
		}
		emit(act, fault, to)
	})
	m.startAttempt(x)
	for n := 1; n <= int(s.Attempt); n++ {
		m.learner(x, n)
	}
	for w := range m.rules.config.Workers {
		m.pool.worker(x, w)
	}
	m.faults.emit(x)
}

// startAttempt lets the manager start the next attempt if the last attempt has ended or seems to have ended.
func (m *Model) startAttempt(x *successors) {
	s := x.From
	if int(s.Attempt) >= m.rules.config.Attempts {
		return
	}
	start := func() *State {
		t := x.Copy()
		t.Attempt++
		t.Learners[t.Attempt].Phase = atStart
		return t
	}
	phase := s.Learners[s.Attempt].Phase
	if s.Attempt == 0 || phase == dead || phase == fenced {
		x.Step(attemptStarted, start().Attempt)
	} else if s.SecondLearners > 0 && running(phase) {
		t := start()
		t.SecondLearners--
		x.Fault(attemptStarted, t.Attempt, 1)
	}
}

// learner emits the transitions of one attempt.
func (m *Model) learner(x *successors, n int) {
	s := x.From
	m.executeSaves(x, n)
	if !running(s.Learners[n].Phase) {
		return
	}
	if n < m.rules.config.Attempts {
		x.Copy().Learners[n].end(dead)
		x.Fault(learnerCrashed, uint8(n))
	}
	if !m.advance(x, n) {
		return
	}
	m.commit.retire(x, n)
	m.heartbeat(x, n)
}

// executeSaves lets the server execute the learner's submitted saves, whether or not the learner runs.
func (m *Model) executeSaves(x *successors, n int) {
	l := &x.From.Learners[n]
	if l.Save == saveQueued && l.ModelState == modelAlive {
		t := x.Copy()
		q := &t.Learners[n]
		t.Checkpoints.add(q.Pending)
		if running(q.Phase) {
			q.Save = saveDone
		} else {
			q.Pending, q.Save = 0, saveNone
			if q.Abandoned == 0 {
				q.ModelState = modelNone
			}
		}
		x.Step(saveExecuted, uint8(n), l.Pending)
	}
	if l.Abandoned != 0 {
		t := x.Copy()
		t.Checkpoints.add(l.Abandoned)
		t.Learners[n].Abandoned = 0
		x.Step(abandonedSaveExecuted, uint8(n), l.Abandoned)
	}
}

// advance emits a learner's next action, by its phase, and reports whether retention and the heartbeat may come first.
func (m *Model) advance(x *successors, n int) bool {
	switch x.From.Learners[n].Phase {
	case atStart:
		m.opening.claim(x, n)
	case atClaimed:
		return m.opening.claimed(x, n)
	case atCleared:
		m.opening.list(x, n)
	case atChosen:
		m.opening.load(x, n)
	case atLoaded:
		m.opening.record(x, n)
	case atOpening:
		m.opening.opened(x, n)
	case atServe:
		m.loop.serve(x, n, m.final.check)
	case atTrained:
		m.commit.trained(x, n)
	case atClean:
		return m.commit.clean(x, n)
	case atReady:
		return m.commit.ready(x, n)
	case atSaving:
		m.commit.saveReply(x, n)
		m.loop.trainAhead(x, n)
	case atSaved:
		return m.commit.saved(x, n)
	case atChecked:
		return m.commit.checked(x, n)
	case atPublished:
		m.commit.advance(x, n)
	}
	return true
}

// heartbeat lets the manager record the newest checkpoint, if runs resume from the manager's record.
func (m *Model) heartbeat(x *successors, n int) {
	s := x.From
	last := s.Learners[n].LastCovered
	if !m.rules.config.ByManager || int(s.Attempt) != n || last == 0 || s.Reported == last {
		return
	}
	t := x.Copy()
	t.Reported = last
	if m.rules.config.Acknowledged {
		t.Learners[n].Covered = m.rules.checkpoints.all[last].Cursor
		t.CoveredLineage = m.rules.checkpoints.all[last].Lineage
	}
	x.Step(heartbeat, uint8(n))
}

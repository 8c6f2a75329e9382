// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// The kinds of transitions.
const (
	leased uint8 = iota
	posted
	sampled
	refused
	submitted
	gaveUp
	workerLost
	workerReturned
	orphanSampled
	modelReplaced
	passDone
	stepDone
	versionAnnounced
	stateSaved
	learnerCrashed
)

type successors = engine.Successors[State]

// Next implements engine.Model.
func (m *Model) Next(s *State, emit func(act engine.Act, fault bool, to *State)) {
	if m.Done(s) {
		return
	}
	x := engine.NewSuccessors(s, emit)
	for w := range uint8(maxWorkers) {
		m.lease(x, w)
		m.play(x, w)
		m.lose(x, w)
	}
	for i, o := range s.Orphans {
		if o.Waiting == 1 {
			t := x.Copy()
			t.Orphans[i] = orphan{}
			m.draw(t, o.Model, o.Version)
			x.Step(orphanSampled, o.Model, o.Version)
		}
	}
	m.train(x)
	if s.Crashes > 0 && s.Model+1 < maxModels {
		t := x.Copy()
		t.Crashes--
		m.open(t)
		t.Group, t.Version = 0, t.Saved
		x.Fault(learnerCrashed)
	}
}

// lease leases the group of the version to an idle worker.
func (m *Model) lease(x *successors, w uint8) {
	s := x.From
	waits := s.Phase == collecting || s.Phase == announced
	if !waits || s.Version == steps || s.Group == 1 || s.Leased != 0 || s.Lost[w] == 1 || s.Workers[w].Active == 1 {
		return
	}
	t := x.Copy()
	t.Workers[w] = playing{Active: 1, Model: s.Model, Version: s.Version}
	t.Unclear |= t.Open[w] // The worker's former group never ended.
	t.Open[w], t.Leased = 1, w+1
	x.Step(leased, w, s.Model, s.Version)
}

// play makes a worker post a sample, get the sample from the server, or submit its group.
func (m *Model) play(x *successors, w uint8) {
	s, p := x.From, x.From.Workers[w]
	switch {
	case p.Active == 0:
	case p.Posted == 1:
		m.answer(x, w)
	case p.Turn < turns:
		t := x.Copy()
		t.Workers[w].Posted = 1
		x.Step(posted, w)
	default:
		t := x.Copy()
		t.Workers[w], t.Open[w], t.Lost[w] = playing{}, 0, 0
		if m.config.ReportUnanswered {
			t.Unclear |= p.Unanswered
		}
		if s.Leased == w+1 {
			t.Leased = 0
		}
		if s.Group == 0 && s.Version == p.Version && s.Version < steps && (s.Phase == collecting || s.Phase == announced) {
			t.Group, t.Leased = 1, 0
			if p.Wrong == 1 {
				t.violate(wrongVersion)
			}
		}
		x.Step(submitted, w, p.Version)
	}
}

// answer draws the sample that a worker waits for. The worker may give the sample up before.
func (m *Model) answer(x *successors, w uint8) {
	s, p, t := x.From, x.From.Workers[w], x.Copy()
	if actual, ok := m.draw(t, p.Model, p.Version); ok {
		to := &t.Workers[w]
		to.Posted, to.Turn = 0, p.Turn+1
		if actual != p.Version {
			to.Wrong = 1
		}
		x.Step(sampled, w, p.Model, p.Version)
	} else {
		t.Workers[w] = playing{} // The worker releases the lease.
		if s.Leased == w+1 {
			t.Leased = 0
		}
		x.Step(refused, w)
	}
	if s.Deadlines > 0 {
		t := x.Copy()
		t.Deadlines--
		if t.addOrphan(p) {
			to := &t.Workers[w]
			to.Posted, to.Turn, to.Unanswered = 0, turns, 1
			x.Fault(gaveUp, w)
		}
	}
}

// lose lets the learner lose a worker, which continues, and lets a lost worker come back without its group: the worker
// has stopped the group, or is another process.
func (m *Model) lose(x *successors, w uint8) {
	s := x.From
	if s.Lost[w] == 0 && s.LostWorkers > 0 {
		t := x.Copy()
		t.LostWorkers--
		t.Lost[w] = 1
		if s.Leased == w+1 {
			t.Leased = 0
		}
		x.Fault(workerLost, w)
	}
	if s.Lost[w] == 1 {
		t := x.Copy()
		if t.Workers[w].Posted == 0 || t.addOrphan(t.Workers[w]) {
			t.Workers[w], t.Lost[w] = playing{}, 0
			x.Step(workerReturned, w)
		}
	}
}

// addOrphan adds the sample that a worker waits for to the samples that no worker waits for. It reports whether there
// was room.
func (s *State) addOrphan(p playing) bool {
	for i := range s.Orphans {
		if s.Orphans[i].Waiting == 0 {
			s.Orphans[i] = orphan{Waiting: 1, Model: p.Model, Version: p.Version}
			return true
		}
	}
	return false
}

// draw draws a sample of a version in a model, and returns the version of the weights that were sampled. It returns
// false if the model is not loaded.
func (m *Model) draw(s *State, model, version uint8) (actual uint8, ok bool) {
	if m.config.ByIndex && s.Models[model].Alive == 0 {
		model = s.Model
	}
	of := &s.Models[model]
	if of.Alive == 0 {
		return 0, false
	}
	if of.Loaded != version+1 {
		of.Weights, of.Loaded = version, version+1
	}
	return of.Weights, true
}

// train makes a step once the group is finished.
func (m *Model) train(x *successors) {
	s, t := x.From, x.Copy()
	weights := s.Models[s.Model].Weights
	switch {
	case s.Phase == collecting && s.Group == 1 && m.config.Acknowledge && s.mayBeSampled():
		if s.Model+1 < maxModels {
			m.open(t)
			x.Step(modelReplaced, t.Model)
		}
	case s.Phase == collecting && s.Group == 1:
		t.Phase = passed
		t.expect(weights, s.Version)
		x.Step(passDone)
	case s.Phase == passed:
		t.expect(weights, s.Version)
		t.Models[s.Model].Weights = s.Version + 1
		t.Phase = stepped
		x.Step(stepDone)
	case s.Phase == stepped:
		t.expect(weights, s.Version+1)
		t.Phase, t.Version, t.Group, t.Leased = announced, s.Version+1, 0, 0
		x.Step(versionAnnounced, t.Version)
	case s.Phase == announced:
		t.expect(weights, s.Version)
		t.Phase, t.Saved = collecting, s.Version
		x.Step(stateSaved, t.Saved)
	}
}

// mayBeSampled reports whether a worker may still sample the weights of the learner's model.
func (s *State) mayBeSampled() bool {
	for _, open := range s.Open {
		if open == 1 {
			return true
		}
	}
	return s.Unclear == 1
}

// open loads the newest state into a new model.
func (m *Model) open(t *State) {
	if m.config.Unload {
		t.Models[t.Model] = trained{}
	}
	t.Model++
	t.Models[t.Model] = trained{Alive: 1, Weights: t.Saved}
	t.Phase, t.Leased, t.Open, t.Unclear = collecting, 0, [maxWorkers]uint8{}, 0
}

func (s *State) expect(weights, version uint8) {
	if weights != version {
		s.violate(biasedWeights)
	}
}

// violate notes a broken invariant, if it is the first.
func (s *State) violate(code engine.Code) {
	if s.Broken == 0 {
		s.Broken = uint8(code)
	}
}

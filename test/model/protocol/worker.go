// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// pool is the work of the workers.
type pool struct{ *slots }

// worker emits the next actions of one worker.
func (p *pool) worker(x *successors, w int) {
	s, worker := x.From, &x.From.Workers[w]
	if w > 0 && *worker == s.Workers[0] {
		return // It acts like the first worker.
	}
	if s.WorkerCrashes > 0 && *worker != (Worker{}) {
		t := x.Copy()
		t.Workers[w] = Worker{}
		t.WorkerCrashes--
		x.Fault(workerCrashed, uint8(w))
	}
	for n := worker.Attempt + 1; n <= s.Attempt; n++ {
		if serving(s.Learners[n].Phase) {
			x.Copy().Workers[w].Attempt = n
			x.Step(workerAttached, uint8(w), n)
		}
	}
	if worker.Attempt == 0 || !serving(s.Learners[worker.Attempt].Phase) {
		return
	}
	p.dropCovered(x, w)
	if p.config.WaitHello {
		for other := range p.config.Workers {
			if s.Workers[other].Attempt != worker.Attempt {
				return
			}
		}
	}
	p.lease(x, w)
}

// dropCovered drops the groups below covered_index.
func (p *pool) dropCovered(x *successors, w int) {
	worker := &x.From.Workers[w]
	covered := min(int(x.From.Learners[worker.Attempt].Covered), maxSlots)
	any := false
	t := x.Copy()
	for i := range covered {
		if stored := worker.Stored[i]; stored != 0 {
			any = true
			if p.watches(CoveredBoughtAgain) {
				t.Dropped.add(stored)
			}
			t.Workers[w].Stored[i] = 0
		}
	}
	if any {
		x.Step(groupsDropped, uint8(w), worker.Attempt, x.From.Learners[worker.Attempt].Covered)
	}
}

// lease lets a worker play each slot that may be leased to it.
func (p *pool) lease(x *successors, w int) {
	s, worker := x.From, &x.From.Workers[w]
	stored := 0
	for _, g := range worker.Stored {
		if g != 0 && !p.groups.all[g].Tombstone {
			stored++
		}
	}
	full := p.config.Capacity > 0 && stored >= p.config.Capacity
	if p.config.MakeRoom && stored >= p.config.Capacity {
		p.makeRoom(x, w)
	}
	l := &s.Learners[worker.Attempt]
	view := p.view(l)
	required := p.required(&view)
	for i := range p.config.Slots {
		if required[i] >= foreignLineage || l.Groups[i] != 0 || (full && worker.Stored[i] == 0) {
			continue
		}
		p.play(x, w, i, required[i])
	}
}

// makeRoom lets a full worker release a group for a lower slot that is missing.
func (p *pool) makeRoom(x *successors, w int) {
	worker := &x.From.Workers[w]
	l := &x.From.Learners[worker.Attempt]
	view := p.view(l)
	required := p.required(&view)
	missing := -1
	for i := 0; i < p.config.Slots && missing < 0; i++ {
		if required[i] < foreignLineage && l.Groups[i] == 0 {
			missing = i
		}
	}
	if missing < 0 {
		return
	}
	give := -1 // The highest slot that the learner has in memory or that can wait.
	for i := range p.config.Slots {
		g := worker.Stored[i]
		if g != 0 && !p.groups.all[g].Tombstone && (i > missing || l.Groups[i] == g) {
			give = i
		}
	}
	if give >= 0 {
		x.Copy().Workers[w].Stored[give] = 0
		x.Step(groupGivenUp, uint8(w), worker.Stored[give])
	}
}

// play plays a slot with each of the sampler weights that the worker may find.
func (p *pool) play(x *successors, w, slot int, version uint8) {
	s := x.From
	if !p.config.SessionByVersion {
		p.samplers.each(&s.Samplers, func(id uint8, weights sampler) {
			if weights.Lineage == version {
				p.playAt(x, w, slot, version, id)
			}
		})
		return
	}
	step := p.lineages.all[version].Step
	if bound := s.Sessions[step]; bound != 0 {
		if s.Samplers.has(bound) {
			p.playAt(x, w, slot, version, bound)
		}
		return
	}
	p.samplers.each(&s.Samplers, func(id uint8, weights sampler) {
		if weights.Lineage == version {
			p.playAt(x, w, slot, version, id)
		}
	})
}

// playAt plays a slot with the given sampler weights, without and with a fault of the environment.
func (p *pool) playAt(x *successors, w, slot int, version, sampled uint8) {
	g := group{
		Slot: uint8(slot), Claimed: version, Actual: p.samplers.all[sampled].Weights, Tombstone: p.isTombstone(slot),
	}
	attempt := x.From.Workers[w].Attempt
	finish := func() uint8 {
		t, id := x.Copy(), p.groups.of(g)
		if p.config.SessionByVersion {
			t.Sessions[p.lineages.all[version].Step] = sampled
		}
		p.store(t, w, slot, id)
		return id
	}
	x.Step(groupFinished, uint8(w), attempt, finish())
	if x.From.EnvironmentFaults > 0 && !g.Tombstone {
		g.Tombstone = true
		id := finish()
		x.To.EnvironmentFaults--
		x.Fault(groupFinished, uint8(w), attempt, id)
	}
}

// store stores a finished group, and counts its cost.
func (p *pool) store(t *State, w, slot int, id uint8) {
	worker := &t.Workers[w]
	before := worker.Stored[slot]
	if before != 0 && before != id && p.config.CountCost && !p.groups.all[before].Tombstone {
		t.Discarded++
		p.violate(t, Discarded)
	}
	worker.Stored[slot] = id
	if p.watches(CoveredBoughtAgain) && t.Dropped.has(id) && worker.Attempt == t.Attempt {
		p.violate(t, CoveredBoughtAgain)
	}
	if !p.config.CountCost {
		return
	}
	if worker.Attempt < t.Opened {
		t.BoughtSuperseded++
		p.violate(t, BoughtForSuperseded)
	}
	if t.Bought.has(id) {
		t.BoughtTwice++
		p.violate(t, BoughtTwice)
	}
	t.Bought.add(id)
}

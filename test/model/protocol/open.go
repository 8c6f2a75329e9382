// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// opening opens an attempt: claim, listing, load, opening state.
type opening struct{ *resume }

// claim writes the claim of an attempt, or creates its model if the fence is to unload models.
func (p *opening) claim(x *successors, n int) {
	if p.config.Fence == FenceNone {
		p.list(x, n)
		return
	}
	if p.config.ReadFirst && x.From.Learners[n].Listable == 0 {
		p.readRecord(x, n, atStart)
		return
	}
	t := x.Copy()
	t.Claims |= 1 << n
	if p.config.Fence == FenceUnload {
		t.Learners[n].ModelState = modelAlive
	}
	t.Learners[n].Phase = atClaimed
	x.Step(claimWritten, uint8(n))
}

// claimed makes the step after the claim: it reads the record, lists, or unloads the models of lower attempts. It
// reports whether retention and heartbeat may come first.
func (p *opening) claimed(x *successors, n int) bool {
	if x.From.higherClaim(n) {
		x.Copy().Learners[n].end(fenced)
		x.Step(claimLooked, uint8(n), 1)
		return false
	}
	if p.config.ByRecord && !p.config.ReadFirst {
		p.readRecord(x, n, atCleared)
		return true
	}
	if p.config.Fence != FenceUnload {
		p.list(x, n)
		return true
	}
	t := x.Copy()
	for m := 1; m < n; m++ {
		t.Learners[m].unload()
	}
	t.Learners[n].Phase = atCleared
	x.Step(modelsUnloaded, uint8(n))
	return false
}

// readRecord reads which models are recorded.
func (p *opening) readRecord(x *successors, n int, next uint8) {
	t := x.Copy()
	t.Learners[n].Listable, t.Learners[n].Phase = x.From.Recorded+1, next
	x.Step(recordRead, uint8(n))
}

// record records the model of a learner before the model has saved anything, and saves the loaded state.
func (p *opening) record(x *successors, n int) {
	t := x.Copy()
	l := &t.Learners[n]
	t.Recorded |= bitOf(uint8(n), l.Model)
	l.Listable = 0
	if l.ModelState == modelAlive {
		p.saveOpening(t, n, l.Base)
	} else {
		p.reopen(t, n, true)
	}
	x.Step(modelRecorded, uint8(n))
}

// bitOf is the bit of a model in the record.
func bitOf(attempt, model uint8) uint16 {
	const models = 5
	if model >= models {
		panic("an attempt has more models than the record has bits")
	}
	return 1 << ((attempt-1)*models + model)
}

// unload unloads the model of a learner, and drops all that is queued on it.
func (l *Learner) unload() {
	l.Abandoned = 0
	if l.ModelState != modelAlive {
		return
	}
	l.ModelState = modelUnloaded
	if l.Save == saveQueued {
		l.Save = saveRefused
	}
	if !running(l.Phase) {
		*l = Learner{Phase: l.Phase}
	}
}

// list lists the checkpoints and chooses one.
func (p *opening) list(x *successors, n int) {
	t := x.Copy()
	base, tie := p.choose(x.From, n)
	if tie {
		p.violate(t, Tie)
	}
	t.Learners[n].Base = base
	t.Learners[n].Phase = atChosen
	x.Step(listed, uint8(n), base)
}

// load loads the chosen checkpoint, or begins from scratch.
func (p *opening) load(x *successors, n int) {
	s, t := x.From, x.Copy()
	base, l := s.Learners[n].Base, &t.Learners[n]
	if base != 0 && !s.Checkpoints.has(base) {
		l.Phase = atStart
		x.Step(loaded, uint8(n), 1)
		return
	}
	if p.config.Fence == FenceUnload && l.ModelState != modelAlive {
		l.Phase = atStart
		x.Step(loaded, uint8(n), 2)
		return
	}
	c := checkpoint{}
	if base != 0 {
		c = p.checkpoints.all[base]
	} else if s.InitialMissing == 1 {
		return // Nothing exists to start from.
	}
	l.ModelState = modelAlive
	l.Step, l.Cursor, l.Weights, l.LastCovered = c.Step, c.Cursor, c.Weights, base
	l.Covered = p.coveredAtOpening(s, base, c)
	p.setLineages(s, l, c)
	p.keepFittingGroups(l)
	if p.config.PreferRow {
		p.takeTombstones(s, l)
	}
	p.checkLoaded(s, t, n, c)
	if p.config.Fence == FenceClaim && p.config.RecordBase && t.Bases[n] == 0 {
		t.Bases[n] = base
		if base == 0 {
			t.Bases[n] = scratch
		}
	}
	if p.config.ByRecord {
		l.Phase = atLoaded
	} else {
		p.saveOpening(t, n, base)
	}
	x.Step(loaded, uint8(n), 0, base)
}

// coveredAtOpening is the covered_index of a learner that has just loaded.
func (p *opening) coveredAtOpening(s *State, base uint8, c checkpoint) uint8 {
	if p.config.Acknowledged {
		if s.Reported == base && base != 0 {
			return c.Cursor
		}
		return 0
	}
	if p.config.CoverTrails {
		return 0
	}
	return c.Cursor
}

// setLineages sets the lineages of the window.
func (p *opening) setLineages(s *State, l *Learner, c checkpoint) {
	l.Lineages = [maxLag + 1]uint8{c.Lineage}
	if c.Foreign {
		return
	}
	parent := c.Lineage
	for j := 1; j <= p.config.Lag && j <= int(c.Step); j++ {
		if p.config.KnowParents {
			parent = p.lineages.all[parent].Parent
			l.Lineages[j] = parent
		} else {
			l.Lineages[j] = p.guessParent(s, int(c.Step)-j)
		}
	}
}

// keepFittingGroups drops the groups in memory that no longer fit.
func (p *opening) keepFittingGroups(l *Learner) {
	for i := range min(int(l.Cursor), maxSlots) {
		l.Groups[i] = 0
	}
	required := p.required(l)
	for i, g := range l.Groups {
		if g != 0 && (required[i] == none || !p.fits(l, g, required[i])) {
			l.Groups[i] = 0
		}
	}
}

// checkLoaded checks the invariants of the loaded state.
func (p *opening) checkLoaded(s, t *State, n int, c checkpoint) {
	if c.Weights != c.Lineage {
		p.violate(t, CorruptLoaded)
	}
	if c.Foreign {
		p.violate(t, ForeignLoaded)
	}
	// A listing after a higher learner has claimed has no effect: the learner looks for claims before it serves.
	idle := p.config.ByRecord && !p.config.OpenBlind && s.higherClaim(n)
	if c.Superseded && !idle {
		p.violate(t, SupersededUsed)
	}
	if uint8(n) == s.Attempt && !c.Foreign && !p.extends(c.Lineage, s.CoveredLineage) {
		p.violate(t, Regressed)
	}
}

// saveOpening begins to save the loaded state under the attempt's own name, if the configuration says so.
func (p *opening) saveOpening(t *State, n int, base uint8) {
	attempt, l := uint8(n), &t.Learners[n]
	l.Phase = atServe
	inherited := p.config.SaveOpening && base != 0 && p.checkpoints.all[base].Attempt != attempt
	fresh := (p.config.SaveOpening || p.config.SaveInitial) && base == 0
	if inherited || fresh {
		l.Pending = p.checkpoints.of(checkpoint{
			Attempt: attempt, Model: l.Model, Step: l.Step, Cursor: l.Cursor, Lineage: l.Lineages[0], Weights: l.Weights,
			Superseded: attempt < t.Opened,
		})
		l.Save, l.Phase = saveQueued, atOpening
		return
	}
	t.Opened = max(t.Opened, attempt)
}

// opened waits for the save of the opening state.
func (p *opening) opened(x *successors, n int) {
	switch x.From.Learners[n].Save {
	case saveDone:
		if p.config.ByRecord && !p.config.OpenBlind && x.From.higherClaim(n) {
			x.Copy().Learners[n].end(fenced)
			x.Step(claimLooked, uint8(n), 1)
			return
		}
		t := x.Copy()
		l := &t.Learners[n]
		l.LastCovered = l.Pending
		l.Pending, l.Save, l.Phase = 0, saveNone, atServe
		t.Opened = max(t.Opened, uint8(n))
		x.Step(openingSaved, uint8(n))
	case saveRefused:
		p.reopen(x.Copy(), n, true)
		x.Step(versionMissing, uint8(n))
	}
}

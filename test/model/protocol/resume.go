// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// resume decides which checkpoint an attempt begins with.
type resume struct{ *slots }

// isNewer reports whether a checkpoint is newer than another, and whether they tie.
func (p *resume) isNewer(a, b checkpoint) (newer, tie bool) {
	ka, kb := p.rank(a), p.rank(b)
	for i := range ka {
		if ka[i] != kb[i] {
			return ka[i] > kb[i], false
		}
	}
	return false, true
}

// rank returns the values by which checkpoints are compared.
func (p *resume) rank(c checkpoint) [3]uint8 {
	switch p.config.Order {
	case OrderName:
		return [3]uint8{c.Step, c.Cursor, c.Attempt}
	case OrderStep:
		return [3]uint8{c.Step, c.Attempt, c.Model}
	default:
		return [3]uint8{c.Attempt, c.Model, c.Step}
	}
}

// counts reports whether a checkpoint may be the base of attempt n.
func (p *resume) counts(s *State, n int, id uint8) bool {
	c := p.checkpoints.all[id]
	if c.Foreign {
		return !p.config.RunFilter
	}
	if n <= maxAttempts && id == s.Learners[n].Rejected && id != 0 {
		return false
	}
	if p.config.ByRecord && n <= maxAttempts && (s.Learners[n].Listable-1)&bitOf(c.Attempt, c.Model) == 0 {
		return false
	}
	return p.hasNeededRow(s, c) && p.followsBases(s, id, c)
}

// hasNeededRow reports whether the row exists that a checkpoint needs.
func (p *resume) hasNeededRow(s *State, c checkpoint) bool {
	if c.Step == 0 || p.config.Need == NeedNothing {
		return true
	}
	found := false
	p.rows.each(&s.Rows, func(_ uint8, r row) {
		own := r.Attempt == c.Attempt && r.Model == c.Model
		if r.Lineage == c.Lineage && (own || p.config.Need == NeedRowOfLineage) {
			found = true
		}
	})
	return found
}

// followsBases reports whether a checkpoint counts by the newest base that a later attempt recorded: of the attempts
// before, only this base and checkpoints of earlier steps count.
func (p *resume) followsBases(s *State, id uint8, c checkpoint) bool {
	if p.config.Fence != FenceClaim || !p.config.RecordBase {
		return true
	}
	for m := maxAttempts; m > int(c.Attempt); m-- {
		if base := s.Bases[m]; base != 0 {
			return base != scratch && (id == base || c.Step < p.checkpoints.all[base].Step)
		}
	}
	return true
}

// choose returns the checkpoint that attempt n resumes from, or 0 if there is none. A tie means that two newest
// checkpoints differ in content.
func (p *resume) choose(s *State, n int) (best uint8, tie bool) {
	if p.config.ByManager && s.Reported != 0 && s.Checkpoints.has(s.Reported) {
		return s.Reported, false
	}
	p.checkpoints.each(&s.Checkpoints, func(id uint8, c checkpoint) {
		if !p.counts(s, n, id) {
			return
		}
		if best == 0 {
			best = id
			return
		}
		other := p.checkpoints.all[best]
		newer, same := p.isNewer(c, other)
		if newer {
			best, tie = id, false
		} else if same && (c.Lineage != other.Lineage || c.Weights != other.Weights) {
			tie = true
		}
	})
	return best, tie
}

// guessParent returns the lineage of the newest state of a step: the guess of a learner without digests of parents.
func (p *resume) guessParent(s *State, step int) uint8 {
	if step == 0 {
		return 0
	}
	best := uint8(0)
	p.checkpoints.each(&s.Checkpoints, func(id uint8, c checkpoint) {
		if c.Foreign || int(c.Step) != step {
			return
		}
		if newer, _ := p.isNewer(c, p.checkpoints.all[best]); best == 0 || newer {
			best = id
		}
	})
	if best == 0 {
		return unknownLineage
	}
	return p.checkpoints.all[best].Lineage
}

// takeTombstones takes over the tombstones of the newest row written for the step that a learner is about to do.
func (p *resume) takeTombstones(s *State, l *Learner) {
	best := row{}
	p.rows.each(&s.Rows, func(_ uint8, r row) {
		if r.Lineage == 0 || p.lineages.all[r.Lineage].Parent != l.Lineages[0] {
			return
		}
		if best.Lineage == 0 || r.Attempt > best.Attempt || (r.Attempt == best.Attempt && r.Model > best.Model) {
			best = r
		}
	})
	if best.Lineage == 0 {
		return
	}
	member := map[uint8]bool{}
	last := uint8(0)
	for _, g := range []byte(p.lineages.all[best.Lineage].Members) {
		last = p.groups.all[g].Slot
		member[last] = true
	}
	version := l.Lineages[min(p.config.Lag, int(l.Step))]
	for i := l.Cursor; i < last; i++ {
		if !member[i] {
			l.Groups[i] = p.groups.of(group{Slot: i, Claimed: version, Actual: version, Tombstone: true})
		}
	}
}

// reopen lets a learner begin again, with a new model if newModel is set.
func (p *resume) reopen(s *State, n int, newModel bool) {
	l := &s.Learners[n]
	if p.config.Fence == FenceUnload {
		l.Abandoned, l.ModelState = 0, modelNone
	} else if l.Pending != 0 && l.Save == saveQueued {
		l.Abandoned = l.Pending
	}
	l.endStep()
	l.Ahead = trained{}
	if newModel {
		l.Model++
	}
	l.Phase = atStart
}

// endStep forgets the step in progress.
func (l *Learner) endStep() {
	l.Pending, l.Save, l.Replies, l.NextCursor, l.NextLineage, l.NextWeights, l.Announced = 0, saveNone, 0, 0, 0, 0, 0
}

// end ends the process of a learner. Its submitted operations stay at the server.
func (l *Learner) end(phase uint8) {
	ended := Learner{Phase: phase, Abandoned: l.Abandoned}
	if l.Save == saveQueued {
		ended.Pending, ended.Save = l.Pending, saveQueued
	}
	if ended.Pending != 0 || ended.Abandoned != 0 {
		ended.ModelState = l.ModelState
	}
	*l = ended
}

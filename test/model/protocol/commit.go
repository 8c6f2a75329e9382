// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// commit is the second half of a step: replies, row, save, look for a higher claim, announcement.
type commit struct{ *resume }

// trained collects the replies of the step.
func (p *commit) trained(x *successors, n int) {
	l, t := &x.From.Learners[n], x.Copy()
	if l.Replies == repliesUnclean {
		if p.config.Save == SavePiped {
			t.Learners[n].Rejected = l.Pending
		}
		p.reopen(t, n, true)
		x.Step(repliesSeen, uint8(n), repliesUnclean)
		return
	}
	t.Learners[n].Phase = atClean
	x.Step(repliesSeen, uint8(n), repliesClean)
}

// clean announces the version, if the configuration announces it early, and then writes the row. With SavePiped it
// waits for the save instead. Like the next functions, it reports whether retention and heartbeat may come first.
func (p *commit) clean(x *successors, n int) bool {
	l := &x.From.Learners[n]
	if p.config.Save == SavePiped {
		p.saveReply(x, n)
		return false
	}
	t := x.Copy()
	if p.config.AnnounceEarly && l.Announced == 0 {
		if l.ModelState != modelAlive {
			p.reopen(t, n, true)
			x.Step(versionMissing, uint8(n))
			return false
		}
		t.Samplers.add(p.samplers.of(sampler{l.NextLineage, l.NextWeights}))
		t.Learners[n].Announced = 1
		x.Step(announced, uint8(n))
		return false
	}
	if p.config.Row == RowAhead {
		t.Rows.add(p.rowOf(l, n))
	}
	t.Learners[n].Phase = atReady // The row is durable, or is not wanted yet.
	x.Step(rowWritten, uint8(n))
	return true
}

// rowOf is the row of the step in progress.
func (p *commit) rowOf(l *Learner, n int) uint8 {
	return p.rows.of(row{l.NextLineage, uint8(n), l.Model})
}

// ready submits the save of the state.
func (p *commit) ready(x *successors, n int) bool {
	if p.config.Save == SaveClean && x.From.Learners[n].Save == saveNone {
		t := x.Copy()
		p.submitSave(t, n)
		t.Learners[n].Phase = atSaving
		x.Step(saveSubmitted, uint8(n))
		return false
	}
	p.publish(x, n)
	return true
}

// saveReply waits for the reply to the save, which may be lost.
func (p *commit) saveReply(x *successors, n int) {
	switch x.From.Learners[n].Save {
	case saveQueued:
		p.saveAhead(x, n)
	case saveDone:
		x.Copy().Learners[n].Phase = atSaved
		x.Step(saveAnswered, uint8(n))
		if x.From.Failures > 0 {
			t := x.Copy()
			t.Failures--
			p.reopen(t, n, true)
			x.Fault(saveAnswered, uint8(n), 1)
		}
	case saveRefused:
		p.reopen(x.Copy(), n, true)
		x.Step(versionMissing, uint8(n))
	}
}

// saveAhead drains a learner whose save failed after the next step was submitted: the learner saves the state again,
// with the weights of the next step.
func (p *commit) saveAhead(x *successors, n int) {
	s, l := x.From, &x.From.Learners[n]
	possible := p.config.SaveAhead && s.Failures > 0 && s.Suspensions > 0 && int(s.Attempt) < p.config.Attempts
	if !possible || l.Ahead == (trained{}) || l.ModelState != modelAlive {
		return
	}
	t := x.Copy()
	t.Failures--
	t.Suspensions--
	state := p.checkpoints.all[l.Pending]
	state.Weights = l.Ahead.Weights
	t.Learners[n].Pending = p.checkpoints.of(state)
	t.Learners[n].end(dead)
	t.Workers = [maxWorkers]Worker{}
	x.Fault(suspended, uint8(n))
}

// saved looks for a higher claim after the save.
func (p *commit) saved(x *successors, n int) bool {
	s, l := x.From, &x.From.Learners[n]
	t := x.Copy()
	if p.config.CheckLast && p.config.Row == RowAfter && !s.Rows.has(p.rowOf(l, n)) {
		t.Rows.add(p.rowOf(l, n))
		x.Step(rowWritten, uint8(n), 1)
		return true
	}
	if p.config.Fence != FenceClaim {
		t.Learners[n].Phase = atChecked
		if p.config.Row == RowAfter {
			t.Rows.add(p.rowOf(l, n))
		}
		x.Step(rowWritten, uint8(n), 1)
		return true
	}
	if s.higherClaim(n) {
		t.Learners[n].end(fenced)
		x.Step(claimLooked, uint8(n), 1)
		return false
	}
	t.Learners[n].Phase = atChecked
	x.Step(claimLooked, uint8(n))
	return true
}

// checked writes the row after the look, if the configuration says so, and announces.
func (p *commit) checked(x *successors, n int) bool {
	s, l := x.From, &x.From.Learners[n]
	if p.config.Fence == FenceClaim && p.config.Row == RowAfter && !s.Rows.has(p.rowOf(l, n)) {
		x.Copy().Rows.add(p.rowOf(l, n))
		x.Step(rowWritten, uint8(n), 1)
		return false
	}
	p.publish(x, n)
	return true
}

// publish announces the new version, or begins the next step if the version is already announced.
func (p *commit) publish(x *successors, n int) {
	l := &x.From.Learners[n]
	if l.Announced == 1 {
		p.advance(x, n)
		return
	}
	t := x.Copy()
	if l.ModelState != modelAlive {
		p.reopen(t, n, true)
		x.Step(versionMissing, uint8(n))
		return
	}
	t.Samplers.add(p.samplers.of(sampler{l.NextLineage, l.NextWeights}))
	t.Learners[n].Phase = atPublished
	x.Step(announced, uint8(n))
}

// advance begins the next step, and covers the saved groups.
func (p *commit) advance(x *successors, n int) {
	s, t := x.From, x.Copy()
	l := &t.Learners[n]
	before := l.Cursor
	l.Step++
	l.shiftLineages()
	l.Weights = l.NextWeights
	for i := range min(int(l.Cursor), maxSlots) {
		l.Groups[i] = 0
	}
	l.LastCovered = l.Pending
	switch {
	case p.config.Acknowledged:
	case p.config.CoverTrails:
		l.Covered = before
	default:
		l.Covered = l.Cursor
	}
	l.Committed = 1
	l.endStep()
	l.Phase = atServe
	if l.Ahead != (trained{}) {
		l.begin(l.Ahead)
		l.Ahead = trained{}
	}
	if int(s.Attempt) == n && !p.config.Acknowledged {
		t.CoveredLineage = l.Lineages[0]
	}
	x.Step(advanced, uint8(n))
}

// retire deletes old states while the loop runs, one at a time.
func (p *commit) retire(x *successors, n int) {
	s, l := x.From, &x.From.Learners[n]
	if !serving(l.Phase) || l.Committed == 0 || p.config.Retention == RetainAll {
		return
	}
	oldest := int(l.Step)
	if p.config.Retention == RetainWindow {
		oldest -= p.config.Lag + p.config.Spare
	}
	p.checkpoints.each(&s.Checkpoints, func(id uint8, c checkpoint) {
		if c.Foreign || int(c.Attempt) > n || int(c.Step) >= oldest || p.isSpared(s, c) {
			return
		}
		t := x.Copy()
		t.Checkpoints.remove(id)
		before, _ := p.choose(s, maxAttempts+1)
		after, _ := p.choose(t, maxAttempts+1)
		if before == id && (after == 0 || p.checkpoints.all[after].Step < p.checkpoints.all[before].Step) {
			p.violate(t, NeededDeleted)
		}
		x.Step(stateDeleted, uint8(n), id)
	})
}

// isSpared reports whether retention must leave a checkpoint for an evaluation that has no row yet.
func (p *commit) isSpared(s *State, c checkpoint) bool {
	due := p.config.Evaluate > 0 && p.config.KeepForEvaluation && int(c.Step) == p.config.Evaluate
	return due && !s.Evaluated.has(c.Lineage)
}

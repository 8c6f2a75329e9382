// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// loop is the work of a learner between two steps: evaluations, sampler weights, the next step.
type loop struct{ *resume }

// serve emits the possible actions of the idle loop.
func (p *loop) serve(x *successors, n int, report func(s *State, l *Learner)) {
	s, l := x.From, &x.From.Learners[n]
	if !p.evaluate(x, n) {
		return
	}
	if int(l.Step) == p.config.Steps {
		if int(s.Attempt) == n {
			t := x.Copy()
			report(t, &t.Learners[n])
			t.Complete = 1
			t.Learners[n].Phase = atDone
			x.Step(verdictReported, uint8(n))
		}
		return
	}
	if l.ModelState != modelAlive {
		p.reopen(x.Copy(), n, true)
		x.Step(versionMissing, uint8(n))
		return
	}
	p.remakeSamplers(x, n)
	p.train(x, n)
}

// evaluate emits the evaluation that is due, and reports whether the loop may continue before the evaluation is done.
func (p *loop) evaluate(x *successors, n int) bool {
	s, l := x.From, &x.From.Learners[n]
	if p.config.Evaluate == 0 || int(l.Step) < p.config.Evaluate {
		return true
	}
	version := l.Lineages[0]
	for p.lineages.all[version].Step > uint8(p.config.Evaluate) {
		version = p.lineages.all[version].Parent
	}
	if s.Evaluated.has(version) {
		return true
	}
	possible := p.hasSampler(s, version) || (int(l.Step) == p.config.Evaluate && l.ModelState == modelAlive)
	p.checkpoints.each(&s.Checkpoints, func(_ uint8, c checkpoint) { possible = possible || c.Lineage == version })
	if possible {
		x.Copy().Evaluated.add(version)
		x.Step(evaluated, uint8(n), version)
	}
	return int(l.Step) != p.config.Steps
}

// remakeSamplers makes the sampler weights of versions that must be sampled and have none.
func (p *loop) remakeSamplers(x *successors, n int) {
	s, l := x.From, &x.From.Learners[n]
	required := p.required(l)
	for j := 0; j <= p.config.Lag && j <= int(l.Step); j++ {
		version, needed := l.Lineages[j], false
		for i := range required {
			needed = needed || (required[i] == version && l.Groups[i] == 0)
		}
		switch {
		case !needed || p.hasSampler(s, version):
		case j == 0:
			x.Copy().Samplers.add(p.samplers.of(sampler{version, l.Weights}))
			x.Step(samplerRemade, uint8(n), version)
		default:
			p.remakeEarlier(x, n, j)
		}
	}
}

// remakeEarlier makes the sampler weights of an earlier version of the window from a state, or replaces the version.
func (p *loop) remakeEarlier(x *successors, n, j int) {
	s, l := x.From, &x.From.Learners[n]
	version, found := l.Lineages[j], false
	p.checkpoints.each(&s.Checkpoints, func(_ uint8, c checkpoint) {
		if !c.Foreign && c.Lineage == version {
			x.Copy().Samplers.add(p.samplers.of(sampler{version, c.Weights}))
			x.Step(samplerRemade, uint8(n), version)
			found = true
		}
	})
	if version == 0 && s.InitialMissing == 0 { // Version 0 can be made from the initial weights while these exist.
		x.Copy().Samplers.add(p.samplers.of(sampler{}))
		x.Step(samplerRemade, uint8(n))
		found = true
	}
	if !found && p.config.Fallback {
		x.Copy().Learners[n].Lineages[j] = l.Lineages[j-1]
		x.Step(versionMissing, uint8(n), 2)
	}
	if !found && p.config.Reopen {
		if best, _ := p.choose(s, n); best != l.LastCovered && best != 0 {
			p.reopen(x.Copy(), n, false)
			x.Step(versionMissing, uint8(n), 1)
		}
	}
}

// train submits the next step.
func (p *loop) train(x *successors, n int) {
	p.submit(x, &x.From.Learners[n], n, func(t *State, result trained) {
		q := &t.Learners[n]
		q.begin(result)
		if p.config.Save == SavePiped {
			p.submitSave(t, n)
		}
		if p.config.SamplerPiped {
			t.Samplers.add(p.samplers.of(sampler{result.Lineage, result.Weights}))
		}
	})
}

// trainAhead submits the next step while the save of the current step has no reply.
func (p *loop) trainAhead(x *successors, n int) {
	l := &x.From.Learners[n]
	if !p.config.TrainAhead || l.Ahead != (trained{}) || l.Announced == 0 || l.ModelState != modelAlive || int(l.Step)+
		1 >= p.config.Steps {
		return
	}
	announced := p.view(l)
	announced.Weights = l.NextWeights
	p.submit(x, &announced, n, func(t *State, result trained) { t.Learners[n].Ahead = result })
}

// begin makes a submitted step the step in progress.
func (l *Learner) begin(step trained) {
	l.NextLineage, l.NextCursor, l.NextWeights, l.Replies = step.Lineage, step.Cursor, step.Weights, step.Replies
	l.Phase = atTrained
}

// submit submits the next step of a learner in state l, if the step's batch is known. A chunk may fail, or a reply may
// be lost.
func (p *loop) submit(x *successors, l *Learner, n int, then func(*State, trained)) {
	s := x.From
	members, cursor, ok := p.batch(l)
	if !ok {
		return
	}
	next := lineage{Parent: l.Lineages[0], Step: l.Step + 1, Members: string(members)}
	exact := p.lineages.of(next)
	next.Corrupt = true
	corrupt := p.lineages.of(next)
	submit := func(weights, replies uint8) *State {
		t := x.Copy()
		then(t, trained{Cursor: cursor, Lineage: exact, Weights: weights, Replies: replies})
		return t
	}
	weights := exact
	if !p.isExact(l, members) {
		weights = corrupt
	}
	submit(weights, repliesClean)
	x.Step(stepSubmitted, uint8(n), exact, allDone)
	if s.Failures == 0 {
		return
	}
	submit(corrupt, repliesUnclean).Failures-- // One chunk failed, so a partial gradient was applied.
	x.Fault(stepSubmitted, uint8(n), exact, chunkFailed)
	submit(weights, repliesUnclean).Failures-- // All was applied, and a reply was lost.
	what := replyLost
	if weights == corrupt {
		what = chunkFailed
	}
	x.Fault(stepSubmitted, uint8(n), exact, what)
}

// isExact reports whether a step on these members gives exactly the weights of its lineage.
func (p *loop) isExact(l *Learner, members []byte) bool {
	for _, g := range members {
		if p.groups.all[g].Actual != p.groups.all[g].Claimed {
			return false
		}
	}
	return l.Weights == l.Lineages[0]
}

// submitSave queues the save of the step in progress.
func (p *rules) submitSave(t *State, n int) {
	l := &t.Learners[n]
	l.Pending = p.checkpoints.of(checkpoint{
		Attempt: uint8(n), Model: l.Model, Step: l.Step + 1, Cursor: l.NextCursor, Lineage: l.NextLineage,
		Weights: l.NextWeights, Superseded: uint8(n) < t.Opened,
	})
	l.Save = saveQueued
	if l.ModelState != modelAlive {
		l.Save = saveRefused
	}
}

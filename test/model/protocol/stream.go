// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// stream submits forward_backward of the next group of a batch that is not complete.
func (p *loop) stream(x *successors, n int) {
	at := x.From.Learners[n]
	if !p.config.Stream || at.ModelState != modelAlive || at.Ahead != (trained{}) {
		return
	}
	l := p.view(&at)
	if int(l.Step) >= p.config.Steps {
		return
	}
	members, _, complete := p.batch(&l)
	if p.config.StreamGuess {
		members = p.finished(&l)
	}
	posted := 0
	for posted < maxBatch && l.Streamed[posted] != 0 {
		posted++
	}
	if complete || posted >= len(members) {
		return
	}
	group := members[posted]
	x.Copy().Learners[n].Streamed[posted] = group
	x.Step(groupStreamed, uint8(n), group)
	if x.From.Failures > 0 {
		t := x.Copy()
		t.Failures--
		t.Learners[n].Streamed[posted], t.Learners[n].Unclean = group, 1
		x.Fault(groupStreamed, uint8(n), group, 1)
	}
}

// streamEarly does so before the state of the version is being saved.
func (p *loop) streamEarly(x *successors, n int) {
	if p.config.StreamEarly && x.From.Learners[n].Announced == 1 {
		p.stream(x, n)
	}
}

// finished returns the groups of a batch that exist, those first that were streamed.
func (p *loop) finished(l *Learner) (members []byte) {
	for _, g := range l.Streamed {
		if g != 0 {
			members = append(members, g)
		}
	}
	required := p.required(l)
	for i, g := range l.Groups {
		if required[i] != none && g != 0 && p.fits(l, g, required[i]) && !p.groups.all[g].Tombstone && !l.hasStreamed(g) && len(members) < p.config.BatchSize {
			members = append(members, g)
		}
	}
	return members
}

func (l *Learner) hasStreamed(group uint8) bool {
	for _, g := range l.Streamed {
		if g == group {
			return true
		}
	}
	return false
}

// beginsWith reports whether the groups that were streamed are the first members of a batch, in its order.
func beginsWith(members []byte, streamed [maxBatch]uint8) bool {
	for i, g := range streamed {
		if g != 0 && (i >= len(members) || members[i] != g) {
			return false
		}
	}
	return true
}

// withGradient returns a checkpoint that was saved while its model held a part of the next step's gradient.
func (p *rules) withGradient(c checkpoint) checkpoint {
	of := p.lineages.all[c.Lineage]
	of.Corrupt = true
	c.Weights = p.lineages.of(of)
	return c
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/tinker-operator/tinker-operator/test/model/engine"

type successors = engine.Successors[State]

// rules are the configuration and the content that all parts of the model share.
type rules struct {
	config Config
	*content
}

// watches reports whether an invariant is checked.
func (r *rules) watches(code engine.Code) bool { return r.config.Only == nil || r.config.Only[code] }

// violate notes a broken invariant, if it is the first.
func (r *rules) violate(s *State, code engine.Code) {
	if r.watches(code) && s.Broken == 0 {
		s.Broken = uint8(code)
	}
}

// isTombstone reports whether a slot is a tombstone at any version.
func (r *rules) isTombstone(slot int) bool { return r.config.Tombstones&(1<<slot) != 0 }

// slots decides the leases, the accepted groups, and the batches.
type slots struct{ *rules }

// firstOf is the first slot of a step, if each step has slots of its own.
func (p *slots) firstOf(step int) int { return step * (p.config.Slots / p.config.Steps) }

// first is the first slot of a learner's batch.
func (p *slots) first(l *Learner) int {
	if p.config.Refill == RefillPerStep {
		return p.firstOf(int(l.Step))
	}
	return int(l.Cursor)
}

// required returns for each slot the lineage that it must be sampled at, or none, if it may not be leased.
func (p *slots) required(l *Learner) (required [maxSlots]uint8) {
	for i := range required {
		required[i] = none
	}
	if p.config.Refill == RefillPerStep {
		p.requireRanges(l, &required)
		return required
	}
	ahead, count, unknown := 0, 0, false
	for i := p.first(l); i < p.config.Slots; i++ {
		if ahead > p.config.Lag || int(l.Step)+ahead >= p.config.Steps {
			break
		}
		required[i] = l.Lineages[min(p.config.Lag-ahead, int(l.Step))]
		if g := l.Groups[i]; g == 0 || !p.fits(l, g, required[i]) {
			unknown = true
		} else if p.groups.all[g].Tombstone {
			continue
		}
		if count++; count < p.config.BatchSize {
			continue
		}
		count = 0
		ahead++
		if p.config.Refill == RefillCertain && unknown {
			break
		}
	}
	return required
}

// requireRanges requires, for each step that can be sampled, as many slots of the step's range as its batch may take.
func (p *slots) requireRanges(l *Learner, required *[maxSlots]uint8) {
	for ahead := 0; ahead <= p.config.Lag && int(l.Step)+ahead < p.config.Steps; ahead++ {
		step, count := int(l.Step)+ahead, 0
		version := l.Lineages[min(p.config.Lag-ahead, int(l.Step))]
		for i := p.firstOf(step); i < p.firstOf(step+1) && count < p.config.BatchSize; i++ {
			required[i] = version
			if g := l.Groups[i]; g == 0 || !p.fits(l, g, version) || !p.groups.all[g].Tombstone {
				count++
			}
		}
	}
}

// fits reports whether a group is accepted for a slot that is required at a lineage.
func (p *slots) fits(l *Learner, g, required uint8) bool {
	claimed := p.groups.all[g].Claimed
	if p.config.Refill != RefillAny {
		return claimed == required
	}
	for j := range p.config.Lag + 1 {
		if l.Lineages[j] == claimed {
			return true
		}
	}
	return false
}

// batch returns the members of the next step, and whether all of them exist. If not, it returns the members before the
// first slot without a group. A step with a range of its own has fewer members if the range has no more.
func (p *slots) batch(l *Learner) (members []byte, cursor uint8, ok bool) {
	required, end := p.required(l), p.config.Slots
	if p.config.Refill == RefillPerStep {
		end = p.firstOf(int(l.Step) + 1)
	}
	for i := p.first(l); i < end; i++ {
		g := l.Groups[i]
		if required[i] == none || g == 0 || !p.fits(l, g, required[i]) {
			return members, 0, false
		}
		if p.groups.all[g].Tombstone {
			continue
		}
		members = append(members, g)
		if len(members) < p.config.BatchSize {
			continue
		}
		if p.config.Refill == RefillPerStep {
			return members, uint8(end), true
		}
		return members, uint8(i + 1), true
	}
	return members, uint8(end), p.config.Refill == RefillPerStep
}

// view is the learner's loop state as its workers see it: one step later once the next version is announced.
func (p *slots) view(l *Learner) Learner {
	v := *l
	if l.Announced == 1 {
		v.Step++
		v.shiftLineages()
	}
	return v
}

// shiftLineages puts the lineage of the next version before the others, and moves the cursor.
func (l *Learner) shiftLineages() {
	for j := maxLag; j > 0; j-- {
		l.Lineages[j] = l.Lineages[j-1]
	}
	l.Lineages[0], l.Cursor = l.NextLineage, l.NextCursor
}

// absorb lets the learners take the groups that attached workers store.
func (p *slots) absorb(s *State) {
	for n := 1; n <= int(s.Attempt); n++ {
		if !serving(s.Learners[n].Phase) {
			continue
		}
		for p.absorbOnce(s, n) {
			continue // Accepted groups may make further slots certain.
		}
	}
}

// absorbOnce looks at each slot once, and reports whether anything changed.
func (p *slots) absorbOnce(s *State, n int) (changed bool) {
	l := &s.Learners[n]
	view := p.view(l)
	required := p.required(&view)
	for i := range p.config.Slots {
		if required[i] == none {
			continue
		}
		if l.Groups[i] != 0 {
			if p.fits(&view, l.Groups[i], required[i]) {
				continue
			}
			l.Groups[i] = 0
			changed = true
			if p.config.CountCost {
				s.Discarded++
				p.violate(s, Discarded)
			}
		}
		for w := range p.config.Workers {
			stored := s.Workers[w].Stored[i]
			if s.Workers[w].Attempt == uint8(n) && stored != 0 && p.fits(&view, stored, required[i]) {
				l.Groups[i] = stored
				changed = true
				break
			}
		}
	}
	return changed
}

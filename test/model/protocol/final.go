// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
)

// final checks the report of a run.
type final struct {
	*slots
	// expected is the final lineage of a run without faults of the environment.
	expected uint8
	// outcomes are the final lineages that were reported; nil unless faults of the environment permit several.
	outcomes map[string]bool
}

// undisturbed returns the final lineage of a run in which nothing fails.
func (p *slots) undisturbed() uint8 {
	chain := []uint8{0}
	cursor := 0
	for k := range p.config.Steps {
		version := chain[max(k-p.config.Lag, 0)]
		if p.config.Refill == RefillPerStep {
			cursor = p.firstOf(k)
		}
		var members []byte
		for ; cursor < p.config.Slots && len(members) < p.config.BatchSize; cursor++ {
			if !p.isTombstone(cursor) {
				members = append(members, p.groups.of(group{Slot: uint8(cursor), Claimed: version, Actual: version}))
			}
		}
		if len(members) < p.config.BatchSize {
			panic("the configuration has too few slots")
		}
		chain = append(chain, p.lineages.of(lineage{Parent: chain[k], Step: uint8(k + 1), Members: string(members)}))
	}
	return chain[p.config.Steps]
}

// check checks the invariants of a run that is complete.
func (p *final) check(s *State, l *Learner) {
	of := l.Lineages[0]
	chain := p.chain(of)
	if p.outcomes != nil {
		p.outcomes[p.describe(l, chain)] = true
	}
	if len(chain) != p.config.Steps+1 {
		p.violate(s, BrokenChain)
		return
	}
	if l.Weights != of {
		p.violate(s, WrongFinalWeights)
		return
	}
	if !p.checkChain(s, l, chain) {
		return
	}
	if p.config.EnvironmentFaults == 0 && of != p.expected {
		p.violate(s, NotReproducible)
		return
	}
	for _, version := range chain[1:] {
		if !p.hasRow(s, version) {
			p.violate(s, RowMissing)
			return
		}
	}
}

// describe describes the outcome of a run.
func (p *final) describe(l *Learner, chain []uint8) string {
	var names []string
	for _, version := range chain[1:] {
		names = append(names, p.lineageName(version))
	}
	return fmt.Sprintf("cursor %d: %s", l.Cursor, strings.Join(names, " "))
}

// hasWrongSize reports whether a batch cannot have the given number of members. The batch of a step with a range of its
// own may have fewer than BatchSize.
func (p *final) hasWrongSize(members int) bool {
	return members > p.config.BatchSize || members < p.config.BatchSize && p.config.Refill != RefillPerStep
}

// checkChain checks that each step has its slots in order, sampled at the version that the lag demands.
func (p *final) checkChain(s *State, l *Learner, chain []uint8) bool {
	next, end := 0, p.config.Slots
	for k := range p.config.Steps {
		version := chain[max(k-p.config.Lag, 0)]
		if p.config.Refill == RefillPerStep {
			next, end = p.firstOf(k), p.firstOf(k+1)
		}
		of := p.lineages.all[chain[k+1]]
		if p.hasWrongSize(len(of.Members)) || of.Corrupt {
			p.violate(s, BrokenChain)
			return false
		}
		for _, m := range []byte(of.Members) {
			g := p.groups.all[m]
			if int(g.Slot) < next || int(g.Slot) >= end {
				p.violate(s, BrokenChain)
				return false
			}
			if g.Actual != version {
				p.violate(s, NotReproducible)
				return false
			}
			next = int(g.Slot) + 1
		}
	}
	if p.config.Refill == RefillPerStep {
		next = p.firstOf(p.config.Steps)
	}
	if next != int(l.Cursor) {
		p.violate(s, BrokenChain) // The cursor does not follow from the lineage.
		return false
	}
	return true
}

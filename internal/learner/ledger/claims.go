// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// claims are the processes that have played, or are to play, each group that no state covers, and the groups that more
// than one process had. The owner's lock guards them.
type claims struct {
	// byKey lists the processes of each group; the process that was given the group last is at the end. shared are the
	// groups of several processes, which are kept when they are covered.
	byKey  map[rl.Key][]string
	shared map[rl.Key]bool
	// covered is the first slot that no state covers, and first its lowest value since this learner loaded a state.
	covered, first int64
	begun          bool
	// evaluations are the covered evaluations. given are the evaluations with groups that this learner gave to processes
	// that had not played these groups before. gave says that it gave any group to such a process.
	evaluations, given map[exchange.Evaluation]bool
	gave               bool
}

// claimed is a group that another process was given later.
type claimed struct {
	key     rl.Key
	covered bool
}

func newClaims() claims {
	return claims{
		byKey: map[rl.Key][]string{}, shared: map[rl.Key]bool{},
		evaluations: map[exchange.Evaluation]bool{}, given: map[exchange.Evaluation]bool{},
	}
}

// give notes that a process is to play a group.
func (c *claims) give(process string, key rl.Key) {
	if !slices.Contains(c.byKey[key], process) {
		c.gave, c.given[evaluationOf(key)] = true, true
	}
	others := slices.DeleteFunc(c.byKey[key], func(other string) bool { return other == process })
	c.set(key, append(others, process))
}

// join notes that a process has played a group, which another may have been given since.
func (c *claims) join(process string, key rl.Key) {
	if !slices.Contains(c.byKey[key], process) {
		c.set(key, slices.Insert(c.byKey[key], 0, process))
	}
}

func (c *claims) set(key rl.Key, processes []string) {
	c.byKey[key] = processes
	if len(processes) > 1 {
		c.shared[key] = true
	}
}

// contested returns the groups that another process was given later, by process.
func (c *claims) contested() map[string][]claimed {
	found := map[string][]claimed{}
	for key := range c.shared {
		covered, _ := c.isCovered(key)
		processes := c.byKey[key]
		for _, process := range processes[:len(processes)-1] {
			found[process] = append(found[process], claimed{key, covered})
		}
	}
	return found
}

// open returns the processes that have played, or are to play, a group that no state covers.
func (c *claims) open() map[string]bool {
	found := map[string]bool{}
	for key, processes := range c.byKey {
		if covered, _ := c.isCovered(key); !covered {
			for _, process := range processes {
				found[process] = true
			}
		}
	}
	return found
}

func evaluationOf(key rl.Key) exchange.Evaluation {
	return exchange.Evaluation{Digest: key.Evaluation, Lineage: key.Lineage}
}

// isCovered reports whether a group is covered, and whether this learner may have given it to a worker before.
func (c *claims) isCovered(key rl.Key) (covered, here bool) {
	if key.Kind == rl.Evaluate {
		covered = c.evaluations[evaluationOf(key)]
		return covered, covered && c.given[evaluationOf(key)]
	}
	return key.Slot < c.covered, key.Slot < c.covered && key.Slot >= c.first
}

// cover notes which training slots are covered. It returns the groups that it forgets, with their process.
func (c *claims) cover(index int64) map[rl.Key]string {
	if !c.begun {
		c.begun, c.first = true, index
	}
	c.covered, c.first = index, min(c.first, index) // it falls when an older state is loaded
	return c.forget()
}

// coverEvaluation notes that an evaluation is covered. It returns the groups that it forgets, with their process.
func (c *claims) coverEvaluation(e exchange.Evaluation) map[rl.Key]string {
	c.evaluations[e] = true
	return c.forget()
}

// forget forgets the covered groups that one process had alone.
func (c *claims) forget() map[rl.Key]string {
	forgotten := map[rl.Key]string{}
	for key, processes := range c.byKey {
		if covered, _ := c.isCovered(key); covered && len(processes) == 1 {
			forgotten[key] = processes[0]
			delete(c.byKey, key)
		}
	}
	return forgotten
}

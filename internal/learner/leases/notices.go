// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// notices are the values that all workers have to know. Its owner's lock guards it.
type notices struct {
	play    []byte
	session string
	// covered is the first slot that is not durable, and evaluated are the latest durable evaluations.
	covered   int64
	evaluated []exchange.Evaluation
	rejected  []exchange.RejectedGroup
}

// cover sets the first slot that is not durable. Workers no longer store the groups of slots below it.
func (n *notices) cover(index int64) {
	n.covered = index
	n.rejected = slices.DeleteFunc(n.rejected, func(r exchange.RejectedGroup) bool { return r.Key.Slot < index })
}

func (n *notices) coverEvaluation(e exchange.Evaluation) {
	const remembered = 64
	if slices.Contains(n.evaluated, e) {
		return
	}
	n.evaluated = append(n.evaluated, e)
	n.evaluated = n.evaluated[max(0, len(n.evaluated)-remembered):]
}

func (n *notices) reject(group exchange.RejectedGroup) { n.rejected = append(n.rejected, group) }

// rejectedAt lists the rejected groups that the worker stores and has not yet replaced with their tombstones.
func (n *notices) rejectedAt(w *worker) []exchange.RejectedGroup {
	var found []exchange.RejectedGroup
	for _, r := range n.rejected {
		if outcome, ok := w.stored[r.Key]; ok && outcome != r.Outcome {
			found = append(found, r)
		}
	}
	return found
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// suspectBatch remembers a batch that the endpoint refused; the model is of no use any more, the next one
// finds out which groups it is about.
func (l *learner) suspectBatch(batch leases.Batch, err error) error {
	const most = 3
	l.refusals++
	if l.refusals > most {
		return err
	}
	l.suspect = &batch
	return fmt.Errorf("training on slots %d to %d: %s", batch.Slots.First, batch.Slots.Next-1, err.Error())
}

// bisect finds the groups that the endpoint refuses, by forward passes, which leave no gradient, and makes
// tombstones of them, here and at their workers. When it refuses every group it is not about groups.
func (l *learner) bisect(ctx context.Context) error {
	batch := *l.suspect
	l.suspect = nil
	var usable []rl.Group
	for _, group := range batch.Groups {
		if group.Outcome == rl.Usable {
			usable = append(usable, group)
		}
	}
	guilty, err := l.guilty(ctx, usable)
	if err != nil {
		return err
	}
	if len(guilty) == len(usable) {
		return &trainee.RejectedError{Err: fmt.Errorf("each of the %d groups of step %d", len(usable), batch.Slots.Step+1)}
	}
	for _, group := range guilty {
		l.config.Logger.Warn("group is refused by the endpoint and left out", "slot", group.Key.Slot)
		l.board.Reject(group.Key, rl.InvalidTokens, "the endpoint refuses its tokens")
	}
	if len(guilty) > 0 {
		l.refusals = 0
	}
	l.server.Notify()
	return nil
}

// guilty narrows groups down to those that are refused by themselves.
func (l *learner) guilty(ctx context.Context, groups []rl.Group) ([]rl.Group, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	datums, err := rl.Datums(groups, rl.Advantages(groups, contract.Advantage{Baseline: contract.BaselineGroupMean, Scale: contract.ScaleNone}))
	if err != nil {
		return nil, err
	}
	accepted, err := l.model.Accepts(ctx, datums, lossOf(l.file))
	if err != nil || accepted {
		return nil, err
	}
	if len(groups) == 1 {
		return groups, nil
	}
	left, err := l.guilty(ctx, groups[:len(groups)/2])
	if err != nil {
		return nil, err
	}
	right, err := l.guilty(ctx, groups[len(groups)/2:])
	return append(left, right...), err
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Suspect is a batch that the endpoint rejected. It is not known yet which of its groups are the cause. The zero
// value has no batch.
type Suspect struct {
	batch *leases.Batch
	// rejections counts the batches in which no group was found to be the cause.
	rejections int
	// rejectedWhole counts the batches of one group that was found to be the cause.
	rejectedWhole int
}

// IsKnown reports whether there is a batch to bisect.
func (s *Suspect) IsKnown() bool { return s.batch != nil }

// Clear forgets earlier rejections once a step succeeds.
func (s *Suspect) Clear() { s.rejections, s.rejectedWhole = 0, 0 }

// Record records a rejected batch. The model can no longer be used; the next one finds out which groups are the cause.
func (s *Suspect) Record(batch leases.Batch, err error) error {
	const most = 3
	s.rejections++
	if s.rejections > most {
		return err
	}
	s.batch = &batch
	return fmt.Errorf("training on slots %d to %d: %s", batch.Slots.First, batch.Slots.Next-1, err.Error())
}

// Bisect returns the groups of the batch that the endpoint rejects. If the endpoint rejects every one of several
// groups, or the only group of two batches in a row, the groups are not the cause, and Bisect returns an error.
func (s *Suspect) Bisect(ctx context.Context, model accepter, losses Losses) ([]rl.Group, error) {
	batch := *s.batch
	s.batch = nil
	var usable []rl.Group
	for _, group := range batch.Groups {
		if group.Outcome == rl.Usable {
			usable = append(usable, group)
		}
	}
	rejected, err := bisect(ctx, usable, model, losses)
	if err != nil {
		return nil, err
	}
	if len(rejected) == len(usable) {
		s.rejectedWhole++
	}
	if s.rejectedWhole > 1 || (len(usable) > 1 && len(rejected) == len(usable)) {
		return nil, failure.New(problem.DataRefused, errAllRejected, "trying the %d groups of step %d", len(usable),
			batch.Slots.Step+1)
	}
	if len(rejected) > 0 {
		s.rejections = 0
	}
	return rejected, nil
}

// errAllRejected says that the groups are not the cause.
var errAllRejected = errors.New("each of them is rejected")

// accepter tries data by a forward pass, which leaves no gradient.
type accepter interface {
	Accepts(ctx context.Context, datums []rl.Datum, losses Losses) (bool, error)
}

// bisect narrows groups down to the groups that are rejected on their own.
func bisect(ctx context.Context, groups []rl.Group, model accepter, losses Losses) ([]rl.Group, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	advantage := algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone}
	datums, err := rl.Datums(groups, rl.Advantages(groups, algorithm.Algorithm{Advantage: advantage}))
	if err != nil {
		return nil, err
	}
	if len(datums) == 0 {
		return nil, nil
	}
	accepted, err := model.Accepts(ctx, datums, losses)
	if err != nil || accepted {
		return nil, err
	}
	if len(groups) == 1 {
		return groups, nil
	}
	left, err := bisect(ctx, groups[:len(groups)/2], model, losses)
	if err != nil {
		return nil, err
	}
	right, err := bisect(ctx, groups[len(groups)/2:], model, losses)
	return append(left, right...), err
}

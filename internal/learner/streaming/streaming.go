// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package streaming trains on the first groups of a batch while others are still sampled.
package streaming

import (
	"context"
	"errors"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Obstacle returns why the training data of a group are not known before those of all others of its batch, or nothing if
// they are.
func Obstacle(algorithm contract.Algorithm) string {
	if algorithm.Substeps > 1 {
		return "substeps divide the data of a whole batch"
	}
	if algorithm.KL != nil {
		return "the KL penalty is centred over a whole batch"
	}
	estimators := []contract.Advantage{algorithm.Advantage}
	for _, role := range algorithm.Roles {
		estimators = append(estimators, role.Advantage)
	}
	for _, a := range estimators {
		if a.Baseline == contract.BaselineBatchMean {
			return "the baseline is the mean of a whole batch"
		}
		if a.Scale == contract.ScaleBatchStd {
			return "advantages are divided by the deviation of a whole batch"
		}
	}
	return ""
}

// target submits the data of a step that it is given in order, and reports whether it submitted a request.
type target interface {
	Add(ctx context.Context, datums []rl.Datum) (submitted bool, err error)
}

// Stream submits the data of the settled groups of one batch.
type Stream struct {
	algorithm contract.Algorithm
	target    target
	// digests are those of the groups that were added.
	digests []rl.Digest
	err     error
}

// New returns a stream for an algorithm without an Obstacle.
func New(algorithm contract.Algorithm, target target) *Stream {
	return &Stream{algorithm: algorithm, target: target}
}

// Taken is how many groups, tombstones included, were added.
func (s *Stream) Taken() int { return len(s.digests) }

// Failed reports whether an error occurred, after which the stream takes no more groups.
func (s *Stream) Failed() bool { return s.err != nil }

// Add adds the next groups of the batch, and reports whether a request was submitted. Finish returns its error: until the batch is
// decided nothing is done about it, since the batch has to be known if its data are refused.
func (s *Stream) Add(ctx context.Context, more leases.Settled) (submitted bool) {
	datums, err := rl.Datums(more.Groups, rl.Advantages(more.Groups, s.algorithm))
	if err == nil && len(datums) > 0 {
		submitted, err = s.target.Add(ctx, datums)
	}
	s.digests, s.err = append(s.digests, more.Digests...), err
	return submitted
}

// errOtherGroups says that the gradient contains groups that are not the batch's.
var errOtherGroups = errors.New("streaming a batch: its first groups are not those that were submitted")

// Finish returns the first error, or one that says that the batch does not begin with the groups that were added.
func (s *Stream) Finish(batch leases.Batch) error {
	if s.err != nil {
		return s.err
	}
	if len(batch.Digests) < len(s.digests) || !slices.Equal(batch.Digests[:len(s.digests)], s.digests) {
		return errOtherGroups
	}
	return nil
}

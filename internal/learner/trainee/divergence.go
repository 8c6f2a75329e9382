// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Detector recognizes a policy that has diverged. Such a version is not committed, and no further step is made: all
// further samples would be useless. The zero value is ready for use.
type Detector struct {
	// step is the step whose loss or gradient was not finite; 0 if there is none.
	step int64
	// invalid counts the groups in a row that had invalid tokens.
	invalid int
}

// CheckReplies fails if the loss or the gradient of a step is not finite. The first time, the error lets the step be
// made again, since an endpoint may fail in this way once.
func (d *Detector) CheckReplies(step int64, replies Replies) error {
	for _, name := range slices.Sorted(maps.Keys(replies.Metrics)) {
		value := replies.Metrics[name]
		if !strings.Contains(name, "loss") && !strings.Contains(name, "grad") || finite.Is(value) {
			continue
		}
		err := fmt.Errorf("%s of step %d is %v", name, step, value)
		if d.step == step {
			return failure.New(problem.Diverged, err, "training")
		}
		d.step = step
		return fmt.Errorf("training: %w", err)
	}
	return nil
}

// leastInvalid is the number of groups in a row with invalid tokens from which on the policy is suspected to have
// diverged.
const leastInvalid = 4

// CheckGroups returns an error if a trained version has given nothing but invalid tokens: batches of such groups alone
// change nothing, and cost as much as others. The endpoint has to be asked then whether the version has diverged.
func (d *Detector) CheckGroups(version int64, groups []rl.Group) error {
	if slices.ContainsFunc(groups, func(g rl.Group) bool { return g.Outcome != rl.InvalidTokens }) {
		d.invalid = 0
		return nil
	}
	if d.invalid += len(groups); d.invalid < leastInvalid || version == 0 {
		return nil
	}
	err := fmt.Errorf("%d groups of step %d have no valid tokens", d.invalid, version)
	if reason := groups[len(groups)-1].Reason; reason != "" {
		err = fmt.Errorf("%w (%s)", err, reason)
	}
	return err
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/learner/examples"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// batchSource provides the batches of a run: groups that workers sample, or rows of data.
type batchSource interface {
	// Run does the work of the source until ctx ends.
	Run(ctx context.Context)
	// Reset begins at a position with the versions of a new model that can be sampled there.
	Reset(at rl.Position, versions []leases.Version)
	// Announce adds a version that can be sampled from now on.
	Announce(v leases.Version)
	// Advance moves to the position after the current batch.
	Advance(to rl.Position)
	// Batch waits until the current batch is decided.
	Batch(ctx context.Context) (leases.Batch, error)
	// Task returns the task of a slot.
	Task(slot int64) rl.Task
	// Progress returns how many groups of the current batch are known, and how many it has so far.
	Progress() (known, all int)
	// CheckNotSampled fails unless all samples of the model's weights have ended.
	CheckNotSampled() error
	// Reject makes a tombstone of a group that the endpoint refuses.
	Reject(key rl.Key, why string)
}

var (
	_ batchSource = (*leases.BatchSource)(nil)
	_ batchSource = (*examples.Source)(nil)
)

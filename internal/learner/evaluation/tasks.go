// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
)

// tasks are the evaluations in progress. They run beside training and are stopped with the model: an evaluation
// that has no result by then is begun anew, and groups that workers have stored are not sampled again.
type tasks struct {
	mu      sync.Mutex
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	// open are begun and have no result; done have one. failed joins the errors that ended others.
	open   map[checkpoints.Version]bool
	done   map[checkpoints.Version]bool
	failed error
}

// start prepares for evaluations that end with ctx.
func (t *tasks) start(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.end = context.WithCancel(ctx)
	t.open, t.done, t.failed = map[checkpoints.Version]bool{}, map[checkpoints.Version]bool{}, nil
}

// stop ends them all.
func (t *tasks) stop() {
	t.mu.Lock()
	end := t.end
	t.mu.Unlock()
	if end != nil {
		end()
	}
	t.running.Wait()
}

// begin runs an evaluation unless it was begun before.
func (t *tasks) begin(v checkpoints.Version, run func(ctx context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[v] || t.done[v] {
		return
	}
	t.open[v] = true
	ctx := t.ctx
	t.running.Go(func() {
		err := run(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		if err != nil {
			t.failed = errors.Join(t.failed, err)
			return
		}
		delete(t.open, v)
		t.done[v] = true
	})
}

// isKnown reports whether an evaluation is begun or has its result.
func (t *tasks) isKnown(v checkpoints.Version) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[v] || t.done[v]
}

// settle records that an evaluation has had its result before.
func (t *tasks) settle(v checkpoints.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[v] = true
}

// outstanding lists the versions whose evaluation has no result yet, by step.
func (t *tasks) outstanding() []checkpoints.Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	var versions []checkpoints.Version
	for v := range t.open {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b checkpoints.Version) int { return int(a.Step - b.Step) })
	return versions
}

// wait returns when none is in progress.
func (t *tasks) wait(ctx context.Context) error {
	t.running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

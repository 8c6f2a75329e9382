// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// tasks are the evaluations in progress. They run beside training and are stopped with the model: an evaluation
// that has no result by then starts again, and groups that workers have stored are not sampled again.
type tasks struct {
	mu      sync.Mutex
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	// open are the versions whose evaluation was begun and has no result yet, done has the results, and failed are the
	// open versions whose evaluation has ended with an error. A result belongs to the version, whichever model made it,
	// so that done outlasts the model.
	open   map[rl.Version]bool
	done   map[rl.Version]artifacts.Evaluation
	failed map[rl.Version]error
}

// start prepares for evaluations that end with ctx.
func (t *tasks) start(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.end = context.WithCancel(ctx)
	t.open = map[rl.Version]bool{}
	if t.done == nil {
		t.done = map[rl.Version]artifacts.Evaluation{}
	}
	t.failed = map[rl.Version]error{}
}

// stop ends all evaluations.
func (t *tasks) stop() {
	t.mu.Lock()
	end := t.end
	t.mu.Unlock()
	if end != nil {
		end()
	}
	t.running.Wait()
}

// begin runs an evaluation unless it is in progress or has its result.
func (t *tasks) begin(v rl.Version, run func(ctx context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.knows(v) {
		return
	}
	t.open[v] = true
	delete(t.failed, v)
	ctx := t.ctx
	t.running.Go(func() {
		err := run(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		if err != nil {
			t.failed[v] = err
			return
		}
		delete(t.open, v)
	})
}

// knows is isKnown with the lock held.
func (t *tasks) knows(v rl.Version) bool {
	_, done := t.done[v]
	return done || (t.open[v] && t.failed[v] == nil)
}

// isKnown reports whether an evaluation is in progress or has its result.
func (t *tasks) isKnown(v rl.Version) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.knows(v)
}

// settle records the result of an evaluation.
func (t *tasks) settle(v rl.Version, result artifacts.Evaluation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[v] = result
}

// result returns the result of an evaluation, and whether it has one.
func (t *tasks) result(v rl.Version) (artifacts.Evaluation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	result, ok := t.done[v]
	return result, ok
}

// outstanding lists the versions whose evaluation has no result yet, by step.
func (t *tasks) outstanding() []rl.Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	var versions []rl.Version
	for v := range t.open {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b rl.Version) int { return int(a.Step - b.Step) })
	return versions
}

// wait returns when no task is in progress, with the errors of the failed tasks.
func (t *tasks) wait(ctx context.Context) error {
	t.running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(slices.Collect(maps.Values(t.failed))...)
}

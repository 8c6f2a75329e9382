// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// errNotInModel says that no model has the weights of the version.
var errNotInModel = errors.New("no model holds its weights any longer")

// committer commits the versions of a learner. While a save has no reply the next step may be submitted, since the
// endpoint saves the model as it is at the save's place in the order of operations. At most one save of a state is in
// flight, and its version is committed before the next one is announced.
type committer struct{ learner *learner }

// begin saves the current version, and completes the commit if no step may be submitted beside it. While the artifact
// store does not take its row, it waits.
func (l committer) begin(ctx context.Context) error {
	c := &commit{learner: l.learner, name: l.learner.name(l.learner.loop.at), began: l.learner.config.Now()}
	if err := perform(ctx, ctx, c, savePhases, l.learner.config.Fault); err != nil {
		return err
	}
	l.learner.loop.commit = c
	// A sampler that changes with the model has to be evaluated before the next step.
	if c.isLast() || l.learner.loop.capabilities.Lacks(capability.SamplerSnapshot) {
		return l.complete(ctx)
	}
	return nil
}

// complete waits for the reply to the save that is in flight, and processes it. It does nothing if no save is in
// flight.
func (l committer) complete(ctx context.Context) error {
	c := l.learner.loop.commit
	if c == nil {
		return nil
	}
	l.learner.loop.commit = nil
	return perform(ctx, ctx, c, commitPhases, l.learner.config.Fault)
}

// drain commits the current version unless it is committed. The version is lost if it has not been saved and the
// model already holds a part of the next step, because a state would contain that part.
func (l committer) drain(ctx context.Context) error {
	loop := &l.learner.loop
	if err := l.complete(ctx); err != nil || loop.at.Step <= max(loop.saved.Step, loop.stored) {
		return err
	}
	if l.learner.loop.model == nil || l.learner.loop.submitted > l.learner.loop.at.Step {
		return errNotInModel
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	return l.complete(ctx)
}

// completeAfter completes the commit after the next step was submitted. submitted is the error of the submission. It
// takes precedence over the error of the commit, unless the latter ends the learner. A failed step does not change
// the state that was saved before it.
func (l committer) completeAfter(ctx context.Context, submitted error) error {
	if errors.Is(submitted, ErrKilled) || ctx.Err() != nil {
		return submitted
	}
	err := l.complete(ctx)
	if submitted == nil || errors.Is(err, ErrKilled) || isFenced(err) {
		return err
	}
	return submitted
}

// awaitBatch waits, while a save is in flight, until the next batch is decided or the save has its reply, and completes
// the commit in the latter case. It leaves errors of the batch to the collector of the batch.
func (l committer) awaitBatch(ctx, soft context.Context) error {
	c := l.learner.loop.commit
	if c == nil {
		return nil
	}
	either, cancel := context.WithCancel(soft)
	defer cancel()
	go func() {
		select {
		case <-c.answered:
			cancel()
		case <-either.Done():
		}
	}()
	if _, err := l.learner.batches.Batch(either); err != nil {
		return l.complete(ctx)
	}
	c.stopWaiting()
	return nil
}

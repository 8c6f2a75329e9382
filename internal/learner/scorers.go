// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// checkScorers makes sure that the reference of the KL penalty and the teachers can be sampled from, and have the
// tokenizer of the policy, since workers cannot finish a group without them. It is called with each model: workers that
// miss one of them make the learner open another model.
func checkScorers(ctx context.Context, l *learner) error {
	for _, s := range l.file.Fixed.Scorers() {
		if err := l.checkScorer(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *learner) checkScorer(ctx context.Context, s contract.Scorer) error {
	if err := l.checkBase(ctx, s); err != nil {
		return err
	}
	session, err := l.rollouts.Get(ctx)
	if err != nil {
		return err
	}
	// The number depends on the model's path, so that the endpoint does not repeat an earlier answer.
	number := rl.SamplingSession(rl.Train, l.loop.at.Lineage,
		"check of "+s.Path+" "+l.loop.model.StatePath(s.String()))
	sampling, err := l.client.CreateSamplingSession(ctx, session, number, s.Checkpoint, s.Model)
	if err == nil {
		_, err = l.client.ComputeLogprobs(ctx, sampling, 0, []int32{1, 1})
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("checking %s: %w", s.Path, err)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUser, tinker.CategoryUnsupported:
	default:
		return err
	}
	// The endpoint gives the same reply for a session that it has lost.
	if alive := l.client.Heartbeat(ctx, session); alive != nil {
		return fmt.Errorf("%w (heartbeat: %w)", err, alive)
	}
	return rejectScorer(s, err)
}

// checkBase makes sure that a checkpoint is of a model that has the tokenizer of the policy. If the endpoint does
// not report the base model of a checkpoint, the check is whether the checkpoint can be sampled.
func (l *learner) checkBase(ctx context.Context, s contract.Scorer) error {
	if s.Checkpoint == "" {
		return nil
	}
	info, err := l.client.WeightsInfo(ctx, s.Checkpoint)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUser, tinker.CategoryUnsupported:
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking of which model %s.checkpoint is: %w", s.Path, err)
	}
	if policy := l.file.Fixed.Model.Name; !models.SameTokenizer(policy, info.BaseModel) {
		return preflight.Await(problem.TokenizersDiffer,
			"%s.checkpoint %s is of the model %s, which is not known to have the tokenizer of %s: name a checkpoint of a model "+
				"that has it until a first step is committed", s.Path, s.Checkpoint, info.BaseModel, policy)
	}
	return nil
}

// rejectScorer returns an error with the repair of a missing model or checkpoint. The run waits for the repair.
func rejectScorer(s contract.Scorer, err error) error {
	if s.Checkpoint != "" {
		return preflight.Await(problem.CheckpointMissing,
			"The endpoint has no checkpoint %s, which %s.checkpoint names: make it readable, name another until a first "+
				"step is committed, or begin a new run with another, from a checkpoint of this run if there is one (%v)",
			s.Checkpoint, s.Path, err)
	}
	return preflight.Await(problem.ModelUnknown,
		"The endpoint does not sample from the base model %s, which %s.model names: serve it there, or choose another "+
			"until a first step is committed (%v)", s.Model, s.Path, err)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// checkReference makes sure that the reference of the KL penalty can be sampled from, since workers cannot finish a
// group without it. It is called with each model: workers that miss the reference make the learner open another one.
func checkReference(ctx context.Context, l *learner) error {
	alg := l.file.Fixed.Algorithm
	if alg == nil || alg.KL == nil {
		return nil
	}
	r := alg.KL.Reference
	session, err := l.rollouts.Get(ctx)
	if err != nil {
		return err
	}
	// The number depends on the model's path, so that the endpoint does not repeat an earlier answer.
	number := rl.SamplingSession(rl.Train, l.loop.at.Lineage, "check of the reference "+l.loop.model.StatePath(r.String()))
	sampling, err := l.client.CreateSamplingSession(ctx, session, number, r.Checkpoint, r.Model)
	if err == nil {
		_, err = l.client.ComputeLogprobs(ctx, sampling, 0, []int32{1, 1})
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("checking the reference of algorithm.kl: %w", err)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUser, tinker.CategoryUnsupported:
	default:
		return err
	}
	// The endpoint gives the same reply for a session that it has lost.
	if alive := l.client.Heartbeat(ctx, session); alive != nil {
		return fmt.Errorf("%w (heartbeat: %w)", err, alive)
	}
	return rejectReference(*r, err)
}

// rejectReference says what to do about a reference that does not exist. The run waits for it.
func rejectReference(r algorithm.Reference, err error) error {
	if r.Checkpoint != "" {
		return preflight.Await(problem.CheckpointMissing,
			"The endpoint has no checkpoint %s, which "+
				"algorithm.kl.reference.checkpoint names: make it readable, name another until a first step is committed, or "+
				"begin a new run with "+
				"another, from a checkpoint of this run if there is one (%v)", r.Checkpoint, err)
	}
	return preflight.Await(problem.ModelUnknown,
		"The endpoint does not sample from the base model %s, the "+
			"reference of algorithm.kl: serve it there, or choose another algorithm.kl.reference.model until a first step is "+
			"committed (%v)", r.Model, err)
}

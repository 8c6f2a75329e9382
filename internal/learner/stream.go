// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/learner/streaming"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// pointStreamed is the fault point after each request that was submitted before its batch was decided, and after the last of them.
const pointStreamed = "step.streamed"

// streamed is what of a step was submitted before its batch was decided.
type streamed struct {
	*streaming.Stream
	requests *trainee.Stream
}

// newStreamed returns nil where nothing of a step can be submitted before its batch is decided: data depend on the whole
// batch, a sampler changes with the model, or the current version would have to be saved from a model that holds a part of the next
// step's gradient, should the learner drain.
func newStreamed(ctx context.Context, l *learner) *streamed {
	algorithm := *l.file.Fixed.Algorithm
	isSaved := l.loop.commit != nil || l.loop.saved.Step == l.loop.at.Step
	if !isSaved || streaming.Obstacle(algorithm) != "" || l.loop.capabilities.Lacks(capability.SamplerSnapshot) {
		return nil
	}
	requests := l.loop.model.Stream(ctx, trainee.LossesOf(algorithm))
	if requests == nil {
		return nil
	}
	return &streamed{Stream: streaming.New(algorithm, requests), requests: requests}
}

// stream submits what can be submitted until the batch is decided.
func (s *trainingStep) stream(ctx context.Context) error { return s.streamUntil(ctx, ctx) }

// streamUntil waits until the batch is decided or until ends, and submits the data of groups that are certain. Submits
// run under ctx.
func (s *trainingStep) streamUntil(ctx, until context.Context) error {
	for s.streamed != nil && !s.streamed.Failed() {
		more, decided, err := s.batches.Settled(until, s.streamed.Taken())
		if err != nil || decided {
			return err
		}
		if !s.streamed.Add(ctx, more) || s.config.Fault == nil {
			continue
		}
		if err := s.config.Fault(ctx, pointStreamed, s.next); err != nil {
			return err
		}
	}
	_, err := s.batches.Batch(until)
	return err
}

// finishStream returns what was submitted before, which is nil if nothing was.
func (s *trainingStep) finishStream() (*trainee.Stream, error) {
	if s.streamed == nil {
		return nil, nil
	}
	return s.streamed.requests, s.streamed.Finish(s.batch)
}

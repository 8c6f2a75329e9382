// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// opSample is the operation that fails if a version has diverged.
const opSample = "asample"

// watched calls collect, which waits for a batch. While workers report that samples fail, it asks the endpoint
// whether the newest version has diverged, and ends the wait if it has. Workers cannot distinguish divergence from an
// outage.
func (s *trainingStep) watched(ctx context.Context, collect func(ctx context.Context) error) error {
	waiting, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.watchSampling(waiting); err != nil {
			end(err)
		}
	}()
	err := collect(waiting)
	cause := context.Cause(waiting)
	end(nil)
	<-done
	if err != nil && ctx.Err() == nil && failure.CodeOf(cause) == problem.Diverged {
		return cause
	}
	return err
}

// watchSampling returns an error once the newest version has diverged. It returns nil when ctx ends. It returns nil
// at once if batches are not sampled, or if a sample would change the model.
func (s *trainingStep) watchSampling(ctx context.Context) error {
	if s.learner.examples != nil || s.learner.loop.capabilities.Lacks(capability.SamplerSnapshot) {
		return nil
	}
	ticker := time.NewTicker(s.learner.config.Timing.Question)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		if problem := s.learner.table.Problem(); problem.Op != opSample || s.learner.loop.at.Step == 0 {
			continue
		}
		found, err := s.ask(ctx)
		if found == trainee.FindingDiverged {
			return failure.New(problem.Diverged, err, "sampling step %d", s.learner.loop.at.Step)
		}
		s.learner.config.Logger.Info("samples fail", "step", s.learner.loop.at.Step, "diverged", false, "err", err)
	}
}

// checkGroups fails if all groups of the newest batches have invalid tokens, because the newest version has diverged
// or for another reason. It asks the endpoint which is the case, and waits until the endpoint gives an answer.
func (s *trainingStep) checkGroups(ctx context.Context) error {
	if s.learner.examples != nil {
		return nil // no version has sampled them
	}
	reason := s.learner.loop.divergence.CheckGroups(s.batch.Version.Step, s.batch.Groups)
	if reason == nil {
		return nil
	}
	for failures := 1; ; failures++ {
		found, err := s.ask(ctx)
		switch found {
		case trainee.FindingDiverged:
			return failure.New(problem.Diverged, fmt.Errorf("%w: %w", reason, err), "sampling step %d", s.learner.loop.at.Step)
		case trainee.FindingSound:
			return failure.New(problem.Untrainable, reason, "sampling step %d, whose policy can be sampled",
				s.batch.Version.Step)
		}
		s.learner.config.Logger.Warn("groups have no valid tokens, and the endpoint does not say why",
			"reason", reason, "err", err)
		if err := s.learner.config.Timing.wait(ctx, failures); err != nil {
			return err
		}
	}
}

// ask asks the endpoint for one token of the newest version.
func (s *trainingStep) ask(ctx context.Context) (trainee.Finding, error) {
	found := s.learner.book.Find(s.learner.loop.at.Version, true)
	if len(found) == 0 {
		return trainee.FindingUnknown, fmt.Errorf("step %d has no sampler weights", s.learner.loop.at.Step)
	}
	session, err := s.learner.rollouts.Get(ctx)
	if err != nil {
		return trainee.FindingUnknown, err
	}
	question := trainee.Question{
		API: s.learner.client, Session: session, Base: s.learner.file.Fixed.Model.Name,
		Number: func(what string) int64 {
			return rl.SamplingSession(rl.Train, s.learner.loop.at.Lineage, fmt.Sprint("question ", s.learner.config.Identity,
				s.learner.loop.questions.Add(1), what))
		},
		Pause: func(ctx context.Context, failures int) error { return s.learner.config.Timing.wait(ctx, failures+1) },
	}
	return question.Ask(ctx, found[0].Path)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/ledger"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// trainingStep is one optimizer step: it collects the next batch, trains on it and announces the version that results.
type trainingStep struct {
	learner *learner
	// next is the number of the version that the step makes.
	next     int64
	clock    *trainee.Stopwatch
	batch    leases.Batch
	work     trainee.Work
	training trainee.Training
	replies  trainee.Replies
}

func (s *trainingStep) number() int64 { return s.next }

// collect waits until the batch is decided.
func (s *trainingStep) collect(ctx context.Context) error {
	var err error
	if s.batch, err = s.learner.batches.Batch(ctx); err != nil {
		return err
	}
	s.clock.Lap("time/sampling")
	if err := s.checkGroups(ctx); err != nil {
		return err
	}
	if s.work, err = trainee.PrepareIn(s.learner.file.Fixed, s.batch); err != nil {
		return err
	}
	return s.learner.meter.Reserve(ctx, s.work.Tokens())
}

// submit submits the step's operations if there is something to train on. If training changes the sampler weights of
// the version before, their evaluation has to end first, and no worker may sample them later.
func (s *trainingStep) submit(ctx context.Context) error {
	if len(s.work.Datums) == 0 {
		return nil
	}
	var err error
	if s.learner.loop.capabilities.Lacks(capability.SamplerSnapshot) {
		if err = s.learner.evaluator.Wait(ctx); err == nil {
			err = s.learner.batches.CheckNotSampled()
		}
		if err != nil {
			return err
		}
	}
	s.learner.loop.submitted = s.next
	s.training, err = s.learner.loop.model.Train(ctx, s.step())
	return err
}

// step returns the step to train.
func (s *trainingStep) step() trainee.Step {
	return trainee.Step{
		Datums: s.work.Datums, Substeps: int(s.learner.file.Fixed.Algorithm.Substeps),
		Losses: trainee.LossesIn(s.learner.file.Fixed),
		Adam:   s.work.Adam,
	}
}

// wait waits until all replies are clean, and records their cost.
func (s *trainingStep) wait(ctx context.Context) error {
	var err error
	if s.replies, err = s.training.Wait(ctx); err != nil {
		return err
	}
	s.learner.spendings.record(ctx)
	if err := s.learner.loop.divergence.CheckReplies(s.next, s.replies); err != nil {
		return err
	}
	s.clock.Lap("time/train_step")
	return nil
}

// announce saves the new version's sampler weights and makes workers sample them.
func (s *trainingStep) announce(ctx context.Context) error {
	at := s.learner.loop.at
	next := checkpoints.Position{
		Version: rl.Version{Step: s.next, Lineage: at.Lineage.Next(s.batch.Manifest(), s.work.Settings)},
		Cursor:  s.batch.After.Cursor, Parent: at.Lineage,
	}
	sampler := ""
	if s.learner.needsSampler(next.Step) {
		var err error
		if sampler, err = s.learner.saveSampler(ctx, next); err != nil {
			return err
		}
	}
	s.learner.loop.at = next
	if len(s.work.Datums) > 0 {
		s.learner.loop.suspect.Clear()
		s.learner.loop.refused = nil
	}
	s.learner.book.Append(next.Version)
	s.learner.batches.Announce(leases.Version{Step: next.Step, Lineage: next.Lineage, Sampler: sampler})
	s.learner.batches.Advance(rl.Position{Step: next.Step, Cursor: next.Cursor})
	s.learner.server.Notify()
	s.clock.Lap("time/save_sampler")
	return nil
}

// record measures the step and adds its row, which is not durable yet.
func (s *trainingStep) record(context.Context) error {
	measured, total := trainee.MeasureIn(s.learner.file.Fixed, s.batch, s.work, s.replies, s.clock)
	metrics, diverged := measure.Finite(measured)
	s.learner.journal.Add(s.row(metrics, s.learner.ledger.Step(s.learner.loop.at.Version, total)), s.encodedEpisodes())
	if s.learner.tracks.uploads != nil && s.learner.examples == nil {
		s.learner.tracks.uploads.Add(s.uploaded())
	}
	// Without artifacts the log alone has the metrics.
	s.learner.config.Logger.Info("step is trained", "step", s.next, "lineage", s.learner.loop.at.Lineage.Short(),
		"cursor", s.learner.loop.at.Cursor, "metrics", metrics)
	s.learner.status.SetStep(metrics, diverged)
	s.learner.report(func(*contract.Progress) {})
	return nil
}

// row returns the record of the step.
func (s *trainingStep) row(metrics map[string]float64, spent ledger.Spent) artifacts.Row {
	at := s.learner.loop.at
	row := artifacts.Row{
		Version: at.Version, Parent: at.Parent, Cursor: at.Cursor,
		Attempt: s.learner.file.Attempt, Time: s.learner.config.Now().Unix(), Metrics: metrics,
		Usage: spent.Usage, Trained: &spent.Trained, TrainingSeconds: spent.Seconds,
	}
	if spent.Cost != nil {
		row.USD = &spent.Cost.Answered
	}
	for _, slot := range s.batch.Manifest().Slots {
		row.Manifest = append(row.Manifest, artifacts.Slot{
			Slot: slot.Slot, Outcome: slot.Outcome.String(), Digest: slot.Digest.String(),
		})
	}
	return row
}

// savesAt reports whether the state of a version is saved.
func savesAt(file contract.RunFile, step int64) bool {
	c := file.Checkpoints
	return step == file.Fixed.Algorithm.Steps || isMultiple(step, c.RollingEverySteps) || isMultiple(step, c.EverySteps)
}

func isMultiple(step, of int64) bool { return of > 0 && step%of == 0 }

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// step is an optimizer step: it collects the next batch, trains on it and announces the version that results.
type step struct {
	*learner
	// next is the number of the version that the step makes.
	next     int64
	clock    *stopwatch
	batch    leases.Batch
	work     stepWork
	training trainee.Training
	replies  trainee.Replies
}

func (s *step) number() int64 { return s.next }

// makeStep makes the next version, and commits it where its state is to be saved.
func (l *learner) makeStep(ctx, soft context.Context) error {
	l.report(func(p *contract.Progress) { p.Phase = contract.PhaseTraining })
	s := &step{learner: l, next: l.at.step + 1, clock: newStopwatch(l.config.Now)}
	err := perform(ctx, soft, s, stepPhases, l.config.Fault)
	var rejected *trainee.RejectedError
	if errors.As(err, &rejected) {
		return l.suspectBatch(s.batch, err)
	}
	if err != nil {
		return err
	}
	if !l.savesAt(l.at.step) {
		l.flushRows()
		return nil
	}
	return l.commit(ctx)
}

// collect waits until the batch is decided.
func (s *step) collect(ctx context.Context) error {
	var err error
	if s.batch, err = s.train.Batch(ctx); err != nil {
		return err
	}
	s.clock.lap("time/sampling")
	s.work, err = s.prepareStep(s.batch)
	return err
}

// submit submits the step's operations where there is something to train on.
func (s *step) submit(ctx context.Context) error {
	if len(s.work.datums) == 0 {
		return nil
	}
	var err error
	s.training, err = s.model.Train(ctx, trainee.Step{
		Datums: s.work.datums, Substeps: s.file.Fixed.Algorithm.Substeps, Loss: lossOf(s.file), Adam: s.work.adam,
	})
	return err
}

// wait waits until all replies are clean.
func (s *step) wait(ctx context.Context) error {
	var err error
	if s.replies, err = s.training.Wait(ctx); err != nil {
		return err
	}
	s.clock.lap("time/train_step")
	return nil
}

// announce saves the new version's sampler weights and has workers sample them.
func (s *step) announce(ctx context.Context) error {
	next := position{
		step: s.next, cursor: s.batch.Slots.Next, parent: s.at.lineage,
		lineage: s.at.lineage.Next(s.batch.Manifest(), s.work.settings),
	}
	sampler, err := s.saveSampler(ctx, next)
	if err != nil {
		return err
	}
	s.at = next
	s.mu.Lock()
	s.chain[next.step] = next.lineage.Short()
	s.mu.Unlock()
	s.train.Announce(leases.Version{Step: next.step, Lineage: next.lineage, Sampler: sampler})
	s.train.Advance(rl.Position{Step: next.step, Cursor: next.cursor})
	s.server.Notify()
	s.clock.lap("time/save_sampler")
	return nil
}

// record measures the step and puts its row down to be written.
func (s *step) record(context.Context) error {
	finite, diverged := rl.Finite(s.measure(s.batch, s.work, s.replies, s.clock))
	s.rows = append(s.rows, s.row(s.batch, finite))
	s.logStep(finite)
	s.report(func(p *contract.Progress) {
		p.Metrics = withEvaluation(finite, p.Metrics)
		p.Diverged = p.Diverged || diverged
	})
	return nil
}

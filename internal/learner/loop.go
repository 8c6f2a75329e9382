// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// loop opens models and trains until the run is done. soft ends when the learner is to drain: what must not
// be cut off runs under ctx.
func (l *learner) loop(ctx, soft context.Context) error {
	if err := l.begin(ctx, soft); err != nil {
		return endOf(soft, err)
	}
	for failures := 0; ; failures++ {
		before := l.at.step
		err := l.pass(ctx, soft)
		l.evaluations.stop()
		if err == nil || soft.Err() != nil || isTerminal(err) {
			return l.leave(ctx, soft, err)
		}
		l.config.Logger.Warn("model is thrown away", "step", l.at.step, "err", err)
		l.abandon(ctx)
		if l.at.step > before {
			failures = 0
		}
		if err := l.pause(soft, failures); err != nil {
			return err
		}
	}
}

// pass opens one model and trains with it until the run is done or the model is poisoned.
func (l *learner) pass(ctx, soft context.Context) error {
	l.evaluations.start(soft)
	if err := l.open(ctx, soft); err != nil {
		return err
	}
	l.evaluateOutstanding()
	if l.suspect != nil {
		if err := l.bisect(ctx); err != nil {
			return err
		}
	}
	for l.train != nil && l.at.step < l.file.Fixed.Algorithm.Steps {
		if l.isDraining() {
			return errDrained
		}
		if err := l.step(ctx, soft); err != nil {
			return err
		}
	}
	return l.finish(ctx, soft)
}

// isDraining says whether the learner is to stop at a saved state.
func (l *learner) isDraining() bool {
	select {
	case <-l.config.Drain:
	case <-l.drain:
	default:
		return false
	}
	return true
}

// finish waits for the evaluations and looks once more before the verdict.
func (l *learner) finish(ctx, soft context.Context) error {
	l.report(func(p *contract.Progress) { p.Phase = contract.PhaseEvaluating })
	if err := l.evaluations.wait(soft); err != nil {
		return err
	}
	if err := l.insist(ctx, "looking for a higher claim", l.look); err != nil {
		return err
	}
	l.retireRest(ctx)
	l.report(func(*contract.Progress) {})
	if l.store == nil {
		return nil
	}
	return l.insist(ctx, "putting metrics together", func() error {
		return l.store.Rebuild(l.at.step, l.at.lineage.String())
	})
}

// leave ends the loop: what is drained saves what it has trained, and models are unloaded.
func (l *learner) leave(ctx, soft context.Context, err error) error {
	if errors.Is(err, ErrKilled) || ctx.Err() != nil {
		return endOf(soft, err)
	}
	err = endOf(soft, err)
	if errors.Is(err, errDrained) && l.model != nil && l.at.step > l.saved.step {
		if saveErr := l.save(ctx); saveErr != nil {
			l.config.Logger.Warn("steps since the last state are lost", "step", l.at.step, "saved", l.saved.step, "err", saveErr)
		}
	}
	if !errors.Is(err, errFenced) {
		l.abandon(ctx)
	}
	return err
}

// endOf prefers the reason for which a context ended to the errors that followed from it.
func endOf(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrKilled) || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// abandon throws the model away.
func (l *learner) abandon(ctx context.Context) {
	if l.model == nil {
		return
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l.model.Abandon(ctx)
	l.model = nil
}

// pause waits before the next model, longer the more were thrown away without progress.
func (l *learner) pause(ctx context.Context, failures int) error {
	if failures == 0 {
		return nil
	}
	const longest = 30 * time.Second
	wait := longest
	if failures < 8 {
		wait = min(longest, l.config.Timing.Pause<<(failures-1))
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// step collects the next batch, trains on it and commits.
func (l *learner) step(ctx, soft context.Context) error {
	l.report(func(p *contract.Progress) { p.Phase = contract.PhaseTraining })
	clock := newStopwatch(l.config.Now)
	batch, err := l.train.Batch(soft)
	if err != nil {
		return err
	}
	clock.lap("time/sampling")
	work, err := l.prepareStep(batch)
	if err != nil {
		return err
	}
	replies, err := l.submit(ctx, work)
	var rejected *trainee.RejectedError
	if errors.As(err, &rejected) {
		return l.suspectBatch(batch, err)
	}
	if err != nil {
		return err
	}
	clock.lap("time/train_step")
	next := position{
		step: l.at.step + 1, cursor: batch.Slots.Next, parent: l.at.lineage,
		lineage: l.at.lineage.Next(batch.Manifest(), work.settings),
	}
	if err := l.announce(ctx, next); err != nil {
		return err
	}
	clock.lap("time/save_sampler")
	return l.commit(ctx, batch, l.measure(batch, work, replies, clock))
}

// submit trains where there is something to train on.
func (l *learner) submit(ctx context.Context, work stepWork) (trainee.Replies, error) {
	step := l.at.step + 1
	submitted := func() error { return l.fault(ctx, "step.submitted", step) }
	if len(work.datums) == 0 {
		return trainee.Replies{}, submitted()
	}
	replies, err := l.model.Train(ctx, trainee.Step{
		Datums: work.datums, Substeps: l.file.Fixed.Algorithm.Substeps, Loss: lossOf(l.file), Adam: work.adam,
	}, submitted)
	if err != nil {
		return trainee.Replies{}, err
	}
	return replies, l.fault(ctx, "replies.clean", step)
}

// announce saves the new version's sampler weights and has workers sample them.
func (l *learner) announce(ctx context.Context, next position) error {
	sampler, err := l.saveSampler(ctx, next)
	if err != nil {
		return err
	}
	l.at = next
	l.mu.Lock()
	l.chain[next.step] = next.lineage.Short()
	l.mu.Unlock()
	l.train.Announce(leases.Version{Step: next.step, Lineage: next.lineage, Sampler: sampler})
	l.train.Advance(rl.Position{Step: next.step, Cursor: next.cursor})
	l.server.Notify()
	return l.fault(ctx, "sampler.announced", next.step)
}

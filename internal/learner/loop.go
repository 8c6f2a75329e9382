// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// loop opens models and trains until the run is done. soft ends when the learner is to drain: what must not
// be cut off runs under ctx.
func (l *learner) loop(ctx, soft context.Context) error {
	if err := perform(ctx, soft, &beginning{learner: l}, beginPhases, l.config.Fault); err != nil {
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
	if err := perform(ctx, soft, &opening{learner: l}, openPhases, l.config.Fault); err != nil {
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
		if err := l.makeStep(ctx, soft); err != nil {
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
	if err := l.insist(ctx, "looking for a higher claim", l.lookForClaim); err != nil {
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
		if saveErr := l.commit(ctx); saveErr != nil {
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// train opens models and trains until the run is complete. soft ends when the learner is to drain; work that must not
// be interrupted runs under ctx.
func (l *learner) train(ctx, soft context.Context) error {
	if err := l.begin(ctx, soft); err != nil {
		return endOf(soft, err)
	}
	for failures := 0; ; failures++ {
		before := l.progress()
		err := l.pass(ctx, soft)
		l.evaluator.Stop()
		final := isFinal(err, l.loop.hasTrained(l.book.States()))
		if err == nil || soft.Err() != nil || (final && !l.repairs.Retries(err)) {
			return l.endLoop(ctx, soft, err)
		}
		l.loop.waits = l.loop.waits || final
		l.config.Logger.Warn("discarding model", "step", l.loop.at.Step, "err", err)
		if l.progress() != before {
			failures, l.loop.discarded, l.loop.missing = 0, 0, 0
		}
		if l.loop.model != nil && !final && l.loop.isDiscarded(err) {
			l.loop.discarded++
		}
		longest, ends := l.pauseAfter(err)
		if ends != nil {
			return l.endLoop(ctx, soft, ends)
		}
		l.status.Fail(report.Model, err.Error())
		l.abandon(ctx)
		if errors.Is(err, leases.ErrPolicyMissing) {
			l.rollouts.Check(soft) // workers find nothing in a session that is lost
		}
		if err := l.config.Timing.waitAtMost(soft, failures, l.repairs.Left(longest)); err != nil {
			return err
		}
	}
}

// begin performs the phases of the beginning. It repeats them while a user has to repair how the run reaches its
// endpoint, and while the endpoint is out of order.
func (l *learner) begin(ctx, soft context.Context) error {
	for failures := 1; ; failures++ {
		err := perform(ctx, soft, &beginning{l}, beginPhases, l.config.Fault)
		if err == nil {
			l.repairs.Accept()
		}
		if err == nil {
			l.status.Fail(report.Model, "")
		}
		if err == nil || soft.Err() != nil || (!l.repairs.Retries(err) && failure.CodeOf(err) != failure.Outage) {
			return err
		}
		l.status.Fail(report.Model, err.Error())
		l.config.Logger.Warn("endpoint cannot be used", "err", err)
		if err := l.config.Timing.waitAtMost(soft, failures, l.repairs.Left(longestPause)); err != nil {
			return err
		}
	}
}

// maxDiscarded is the number of models that may be discarded in a row without progress. Then the learner ends or, if
// answers of the endpoint are the cause, opens a model only every barrenPause, because each model costs the training
// of the steps since the last saved state.
const (
	maxDiscarded = 8
	barrenPause  = 10 * time.Minute
)

// isOfEndpoint reports whether an answer of the endpoint is the cause of a failure. Another learner would meet the same
// answers, so that the run waits until they change.
func isOfEndpoint(err error) bool {
	return failure.CodeOf(err) != "" || errors.Is(err, leases.ErrPolicyMissing)
}

// pauseAfter returns the longest pause after the failure of a model, or the error by which the learner ends.
func (l *learner) pauseAfter(err error) (time.Duration, error) {
	if l.loop.discarded < maxDiscarded {
		return longestPause, nil
	}
	if !isOfEndpoint(err) {
		return 0, fmt.Errorf("%w: %d models were discarded at step %d, the last because of: %w", errNoProgress,
			maxDiscarded, l.loop.at.Step, err)
	}
	l.status.Block(problem.EndpointFailing, cmp.Or(client.EvidenceOf(err), err.Error()))
	return barrenPause, nil
}

// isDiscarded reports whether a failure has cost a model that counts as discarded without progress. A refused key does
// not count, since it costs no training. Workers that did not find the sampler weights once do not count either, since
// their session may have been lost.
func (s *loopState) isDiscarded(err error) bool {
	if errors.Is(err, leases.ErrPolicyMissing) {
		s.missing++
		return s.missing > 1
	}
	return failure.CodeOf(err) != problem.KeyRefused
}

// progress returns a number that grows with each committed step and each accepted group.
func (l *learner) progress() int64 {
	l.loop.committed = max(l.loop.committed, l.loop.saved.Step)
	return l.loop.committed + l.table.Counters().Accepted
}

// hasTrained reports whether the run has made a step, so that the endpoint once accepted its settings.
func (s *loopState) hasTrained(states []checkpoints.Entry) bool {
	return s.at.Step > 0 || slices.ContainsFunc(states, func(e checkpoints.Entry) bool { return e.Name.Step > 0 })
}

// pass opens one model and trains with it until the run is complete or the model can no longer be used.
func (l *learner) pass(ctx, soft context.Context) error {
	l.evaluator.Start(soft)
	if err := l.loop.retryRefusedStep(soft, l.factory); err != nil {
		return err
	}
	if err := perform(ctx, soft, &modelOpening{learner: l}, openPhases, l.config.Fault); err != nil {
		return err
	}
	l.repairs.Opened()
	l.evaluator.Begin(l.loop.saved.Step)
	l.track()
	if l.batches != nil {
		// Earlier openings without progress have left checkpoints. The evaluations that have begun keep theirs.
		l.retirer.begin(l.loop.saved.Step, l.background)
	}
	if err := l.rejectGroups(ctx); err != nil {
		return err
	}
	for l.batches != nil && l.loop.at.Step < l.file.Fixed.Algorithm.Steps {
		if l.isDraining() {
			return errDrained
		}
		if err := l.spendings.check(); err != nil {
			return err
		}
		if err := l.measureHeldOut(ctx, soft); err != nil {
			return err
		}
		if err := l.makeStep(ctx, soft); err != nil {
			return err
		}
	}
	if err := l.measureHeldOut(ctx, soft); err != nil {
		return err
	}
	return l.finish(ctx, soft)
}

// track makes the lines available to the services that show the run's curves, up to the version that is saved. The
// evaluations of that version have begun.
func (l *learner) track() {
	at := l.loop.saved
	last := l.batches == nil || at.Step >= l.file.Fixed.Algorithm.Steps
	l.tracks.tracker.Advance(at.Version, last, l.evaluator.Outstanding())
}

// measureHeldOut measures the version that the model holds on held-out rows, if a measurement is due. The version is
// committed first.
func (l *learner) measureHeldOut(ctx, soft context.Context) error {
	if !l.heldOut.isDue(l.loop.at.Version) {
		return nil
	}
	if err := (committer{l}).complete(ctx); err != nil {
		return err
	}
	return l.heldOut.evaluate(ctx, soft, l.loop.at.Version, l.reader, l.loop.model)
}

// retryRefusedStep returns an error while the endpoint refuses the step that the run waits to train. It tries a step of
// few sequences, so that a batch is not trained again in vain.
func (s *loopState) retryRefusedStep(ctx context.Context, models *trainee.Factory) error {
	if !s.waits {
		return nil
	}
	if s.refused != nil {
		if err := models.Try(ctx, *s.refused); err != nil {
			return err
		}
		s.suspect.Clear()
	}
	s.refused, s.waits = nil, false
	return nil
}

// rejectGroups makes tombstones, here and at their workers, of the groups that the endpoint rejects. It does nothing
// unless a batch was rejected.
func (l *learner) rejectGroups(ctx context.Context) error {
	if !l.loop.suspect.IsKnown() {
		return nil
	}
	rejected, err := l.loop.suspect.Bisect(ctx, l.loop.model, trainee.LossesIn(l.file.Fixed))
	if err != nil {
		return err
	}
	for _, group := range rejected {
		l.config.Logger.Warn("group is rejected by the endpoint and left out", "slot", group.Key.Slot)
		l.batches.Reject(group.Key, "the endpoint refuses its tokens")
	}
	l.server.Notify()
	return nil
}

// isDraining reports whether the learner is to stop at a saved state.
func (l *learner) isDraining() bool {
	return wait.IsClosed(l.config.Drain) || l.wasAskedToDrain()
}

// wasAskedToDrain reports whether the manager asked the learner to stop.
func (l *learner) wasAskedToDrain() bool { return wait.IsClosed(l.drain) }

// finish waits for the evaluations, and looks for a higher claim a last time before the verdict.
func (l *learner) finish(ctx, soft context.Context) error {
	l.report(func(p *contract.Progress) { p.Phase = contract.PhaseEvaluating })
	if err := l.spendings.awaitEvaluations(soft, l.evaluator, l.config.Timing.Tick); err != nil {
		return err
	}
	if err := l.journal.AwaitClaims(ctx); err != nil {
		return err
	}
	if l.batches != nil {
		l.retirer.finish(ctx, l.loop.saved.Step)
	}
	if err := l.table.AwaitBarrier(soft); err != nil {
		return err
	}
	l.ledger.End()
	l.report(func(*contract.Progress) {})
	return l.journal.AwaitRebuild(ctx, l.loop.at.Version)
}

// endLoop ends the loop: a drained learner saves its training, and names the steps that it could not save. Models are
// unloaded.
func (l *learner) endLoop(ctx, soft context.Context, err error) error {
	if errors.Is(err, ErrKilled) || ctx.Err() != nil {
		return endOf(soft, err)
	}
	ended, err := err, endOf(soft, err)
	if errors.Is(err, errDrained) {
		saveErr := (committer{l}).drain(ctx)
		if saveErr == nil && errors.Is(ended, artifacts.ErrUnanswered) {
			saveErr = ended
		}
		if saveErr != nil {
			l.config.Logger.Warn("the newest version is not committed", "step", l.loop.at.Step, "committed", l.loop.saved.Step,
				"err", saveErr)
		}
		err = withUnsaved(err, l.loop.unsaved(saveErr))
	}
	if !isFenced(err) {
		l.abandon(ctx)
	}
	// A store that hangs does not keep the verdict back.
	recording, stop := context.WithTimeout(ctx, l.config.Timing.DrainPatience)
	defer stop()
	l.spendings.record(recording)
	l.report(func(*contract.Progress) {})
	return err
}

// endOf returns the reason for which ctx has ended, instead of an error that followed from its end.
func endOf(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrKilled) || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// abandon throws the model away.
func (l *learner) abandon(ctx context.Context) {
	l.loop.commit = nil
	if l.loop.model == nil {
		return
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l.loop.model.Abandon(ctx)
	l.loop.model = nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// commit makes the step that was trained last durable: its row, then its state, whose clean reply is the
// commit, and only then what follows from it. Steps between states leave a row alone.
func (l *learner) commit(ctx context.Context, batch leases.Batch, metrics map[string]float64) error {
	finite, diverged := rl.Finite(metrics)
	l.rows = append(l.rows, l.row(batch, finite))
	l.logStep(finite)
	l.report(func(p *contract.Progress) {
		p.Metrics = withEvaluation(finite, p.Metrics)
		p.Diverged = p.Diverged || diverged
	})
	if !l.savesAt(l.at.step) {
		l.flushRows()
		return nil
	}
	return l.save(ctx)
}

// savesAt says whether a version's state is saved.
func (l *learner) savesAt(step int64) bool {
	c := l.file.Checkpoints
	return step == l.file.Fixed.Algorithm.Steps || isMultiple(step, c.RollingEverySteps) || isMultiple(step, c.EverySteps)
}

func isMultiple(step, of int64) bool { return of > 0 && step%of == 0 }

// row is the record of the step that led to the version at hand.
func (l *learner) row(batch leases.Batch, metrics map[string]float64) store.Row {
	row := store.Row{
		Step: l.at.step, Lineage: l.at.lineage.String(), Parent: l.at.parent.String(), Cursor: l.at.cursor,
		Attempt: l.file.Attempt, Metrics: metrics, Usage: l.usageNow(), TrainingSeconds: l.usage.seconds,
	}
	for _, slot := range batch.Manifest().Slots {
		row.Manifest = append(row.Manifest, store.Slot{
			Slot: slot.Slot, Outcome: slot.Outcome.String(), Digest: slot.Digest.String(),
		})
	}
	return row
}

// flushRows makes rows durable, in order, and says whether there are none left.
func (l *learner) flushRows() bool {
	for len(l.rows) > 0 {
		if l.store != nil {
			if err := l.store.WriteRow(l.rows[0]); err != nil {
				l.config.Logger.Warn("artifact store does not answer", "act", "writing row", "err", err)
				l.status.blockOnStore(err.Error())
				return false
			}
			l.status.blockOnStore("")
		}
		l.lines, l.rows = append(l.lines, l.rows[0]), l.rows[1:]
	}
	return true
}

// save commits the version at hand. While the store does not answer nothing is saved, as if states were
// further apart, unless there is nothing else left to do.
func (l *learner) save(ctx context.Context) error {
	name := l.name(l.at, l.model.Number)
	if err := l.writeRows(ctx, l.model.StatePath(name.String())); err != nil {
		if errors.Is(err, errStoreSilent) {
			return nil
		}
		return err
	}
	if err := l.fault(ctx, "row.written", l.at.step); err != nil {
		return err
	}
	began := l.config.Now()
	path, err := l.model.SaveState(ctx, name.String(), func() error { return l.fault(ctx, "save.submitted", l.at.step) })
	if err != nil {
		return err
	}
	if err := l.fault(ctx, "save.done-unanswered", l.at.step); err != nil {
		return err
	}
	l.enter(path, name, false)
	if err := l.fault(ctx, "save.answered", l.at.step); err != nil {
		return err
	}
	l.config.Logger.Info("state is saved", "step", l.at.step, "path", path, "seconds", l.config.Now().Sub(began).Seconds())
	return l.cover(ctx)
}

var errStoreSilent = errors.New("the artifact store does not answer")

// writeRows makes the rows durable that the state goes with; the newest names it.
func (l *learner) writeRows(ctx context.Context, path string) error {
	if n := len(l.rows); n > 0 {
		l.rows[n-1].State = path
	} else if n := len(l.lines); n > 0 {
		// A drained learner saves a version whose row is written: it is written again.
		l.rows, l.lines = []store.Row{l.lines[n-1]}, l.lines[:n-1]
		l.rows[0].State = path
	}
	if l.flushRows() {
		return nil
	}
	if l.at.step < l.file.Fixed.Algorithm.Steps {
		return errStoreSilent
	}
	return l.insist(ctx, "writing rows", func() error {
		if l.flushRows() {
			return nil
		}
		return errStoreSilent
	})
}

// cover acts on a state that is saved, unless a higher attempt has shown itself meanwhile: then it is that
// attempt's to say what became of it.
func (l *learner) cover(ctx context.Context) error {
	look := l.look
	if l.at.step == l.file.Fixed.Algorithm.Steps {
		look = func() error { return l.insist(ctx, "looking for a higher claim", l.look) }
	}
	if err := look(); err != nil {
		if errors.Is(err, errFenced) || ctx.Err() != nil {
			return err
		}
		l.config.Logger.Warn("artifact store does not answer", "act", "looking for a higher claim", "err", err)
		l.status.blockOnStore(err.Error())
		return nil
	}
	if err := l.fault(ctx, "claim.looked", l.at.step); err != nil {
		return err
	}
	l.saved = l.at
	l.board.Cover(l.at.cursor)
	l.server.Notify()
	if err := l.fault(ctx, "covered.sent", l.at.step); err != nil {
		return err
	}
	l.writeLines()
	l.judge(l.at.version())
	l.evaluateOutstanding()
	if err := l.fault(ctx, "retire.before", l.at.step); err != nil {
		return err
	}
	l.retire(ctx)
	l.report(func(*contract.Progress) {})
	return nil
}

// writeLines adds the committed steps to metrics.jsonl. What fails is restored when the file is rebuilt.
func (l *learner) writeLines() {
	for _, row := range l.lines {
		if l.store == nil {
			break
		}
		if err := l.store.AppendStep(row); err != nil {
			l.config.Logger.Warn("metrics are not appended", "step", row.Step, "err", err)
		}
	}
	l.lines = nil
}

// logStep leaves the metrics in the log, where they are all there is without artifacts.
func (l *learner) logStep(metrics map[string]float64) {
	l.config.Logger.Info("step is trained", "step", l.at.step, "lineage", l.at.lineage.Short(),
		"cursor", l.at.cursor, "metrics", metrics)
}

// retire gives what is out of use a time to live, beside the loop: no step waits for it. While one round is
// under way none is begun, and what failed or was left out is the next one's.
func (l *learner) retire(ctx context.Context) {
	select {
	case l.retiring <- struct{}{}:
	default:
		return
	}
	due := l.retirements()
	l.tasks.Go(func() {
		defer func() { <-l.retiring }()
		l.retireAll(ctx, due)
	})
}

// retireRest retires what is left at the end of the run.
func (l *learner) retireRest(ctx context.Context) {
	select {
	case l.retiring <- struct{}{}:
		defer func() { <-l.retiring }()
		l.retireAll(ctx, l.retirements())
	case <-ctx.Done():
	}
}

func (l *learner) retireAll(ctx context.Context, due []checkpoints.Retirement) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, r := range due {
		if err := l.client.SetTTL(ctx, r.Path, &r.TTLSeconds); err != nil && !isMissing(err) {
			l.config.Logger.Warn("checkpoint is not retired", "path", r.Path, "err", err)
			continue
		}
		l.expire(r)
	}
}

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
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// commit makes the version at hand durable: its row, then its state, whose clean reply is the commit, and only
// then what follows from it.
type commit struct {
	*learner
	name  rl.CheckpointName
	began time.Time
	save  *trainee.Save
	path  string
}

func (c *commit) number() int64 { return c.at.step }

// commit saves the version at hand. While the artifact store does not answer nothing is saved, as if states
// were further apart, unless there is nothing else left to do.
func (l *learner) commit(ctx context.Context) error {
	c := &commit{learner: l, name: l.name(l.at, l.model.Number)}
	err := perform(ctx, ctx, c, commitPhases, l.config.Fault)
	if errors.Is(err, errPostponed) {
		return nil
	}
	return err
}

// errPostponed says that the artifact store does not answer, so that the rest waits for a later commit.
var errPostponed = errors.New("the artifact store does not answer")

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

// writeRows makes the rows durable that the state goes with; the newest names it.
func (c *commit) writeRows(ctx context.Context) error {
	path := c.model.StatePath(c.name.String())
	if n := len(c.rows); n > 0 {
		c.rows[n-1].State = path
	} else if n := len(c.lines); n > 0 {
		// A drained learner saves a version whose row is written: it is written again.
		c.rows, c.lines = []store.Row{c.lines[n-1]}, c.lines[:n-1]
		c.rows[0].State = path
	}
	if c.flushRows() {
		return nil
	}
	if c.at.step < c.file.Fixed.Algorithm.Steps {
		return errPostponed
	}
	return c.insist(ctx, "writing rows", func() error {
		if c.flushRows() {
			return nil
		}
		return errPostponed
	})
}

func (c *commit) submit(ctx context.Context) error {
	c.began = c.config.Now()
	var err error
	c.save, err = c.model.SaveState(ctx, c.name.String())
	return err
}

func (c *commit) wait(ctx context.Context) error {
	var err error
	c.path, err = c.save.Wait(ctx)
	return err
}

func (c *commit) enter(context.Context) error {
	c.learner.enter(c.path, c.name, false)
	return nil
}

// look makes sure that no higher attempt has claimed the run: it would be that attempt's to say what became of
// the state.
func (c *commit) look(ctx context.Context) error {
	c.config.Logger.Info("state is saved", "step", c.at.step, "path", c.path, "seconds", c.config.Now().Sub(c.began).Seconds())
	if c.at.step == c.file.Fixed.Algorithm.Steps {
		return c.insist(ctx, "looking for a higher claim", c.lookForClaim)
	}
	err := c.lookForClaim()
	if err == nil || errors.Is(err, errFenced) || ctx.Err() != nil {
		return err
	}
	c.config.Logger.Warn("artifact store does not answer", "act", "looking for a higher claim", "err", err)
	c.status.blockOnStore(err.Error())
	return errPostponed
}

// cover tells the workers that the groups of the version are durable.
func (c *commit) cover(context.Context) error {
	c.saved = c.at
	c.board.Cover(c.at.cursor)
	c.server.Notify()
	return nil
}

// evaluate writes the metrics of the committed steps and begins the evaluations that are due.
func (c *commit) evaluate(context.Context) error {
	c.writeLines()
	c.judge(c.at.version())
	c.evaluateOutstanding()
	return nil
}

func (c *commit) retire(context.Context) error {
	c.learner.retire()
	c.report(func(*contract.Progress) {})
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
func (l *learner) retire() {
	select {
	case l.retiring <- struct{}{}:
	default:
		return
	}
	due := l.retirements()
	l.background(func(ctx context.Context) {
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

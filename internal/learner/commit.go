// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// commit makes the current version durable: its row, then its state, whose clean reply is the commit, and only then
// what follows from it.
type commit struct {
	*learner
	name rl.CheckpointName
	// began is when the commit began, and seconds how long the loop waited for it; 0 while it waits.
	began   time.Time
	seconds float64
	// answered is closed when the save has its reply: a path, or an error.
	answered chan struct{}
	path     string
	failed   error
}

func (c *commit) number() int64 { return c.loop.at.Step }

// isLast reports whether nothing is left to do but to save.
func (c *commit) isLast() bool { return c.loop.at.Step == c.file.Fixed.Algorithm.Steps }

// writeRows makes the rows durable that belong to the state, and the rollouts that are to be sent.
func (c *commit) writeRows(ctx context.Context) error {
	if err := c.journal.WriteRowsOf(ctx, c.loop.model.StatePath(c.name.String())); err != nil {
		return err
	}
	c.tracks.uploads.Store()
	return nil
}

func (c *commit) submit(ctx context.Context) error {
	save, err := c.loop.model.SaveState(ctx, c.name)
	if err != nil {
		return err
	}
	c.answered = make(chan struct{})
	go func() {
		defer close(c.answered)
		c.path, c.failed = save.Wait(ctx)
	}()
	return nil
}

func (c *commit) wait(ctx context.Context) error {
	select {
	case <-c.answered:
		return c.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopWaiting notes that the loop waits for the commit no longer: what it does from now on belongs to the next step.
func (c *commit) stopWaiting() { c.seconds = c.elapsed() }

func (c *commit) elapsed() float64 { return c.config.Now().Sub(c.began).Seconds() }

// add adds the state to the book, and the time for which the loop waited for its save to the step's.
func (c *commit) add(context.Context) error {
	c.addSaved(c.path, c.name, false)
	c.loop.stored = c.loop.at.Step
	seconds := cmp.Or(c.seconds, c.elapsed())
	c.config.Logger.Info("state is saved", "step", c.loop.at.Step, "path", c.path, "seconds", c.elapsed())
	c.journal.Complete(func(row *artifacts.Row) {
		trainee.AddSave(row.Metrics, seconds)
		row.TrainingSeconds += seconds
	})
	c.ledger.AddSeconds(seconds)
	c.status.Update(func(p *contract.Progress) { trainee.AddSave(p.Metrics, seconds) })
	return nil
}

// checkClaims fails if a higher attempt has claimed the run, since that attempt then decides whether the state
// counts.
func (c *commit) checkClaims(ctx context.Context) error {
	if c.isLast() {
		return c.journal.AwaitClaims(ctx)
	}
	return c.journal.LookForClaim(ctx)
}

// cover reports to the workers that the groups of the version are durable.
func (c *commit) cover(context.Context) error {
	c.loop.saved = c.loop.at
	c.status.Touch()
	c.status.Fail(report.Model, "")
	c.repairs.Accept()
	c.table.Cover(c.loop.at.Cursor)
	c.server.Notify()
	return nil
}

// evaluate appends the metrics of the committed steps, scores the version by them should the best be chosen so, and
// begins the evaluations that are due.
func (c *commit) evaluate(ctx context.Context) error {
	c.journal.AppendLines(ctx)
	metric := c.file.Checkpoints.KeepBestMetric
	if value, ok := c.status.Progress().Metrics[metric]; ok && !c.evaluator.Measures(metric) {
		c.book.Score(c.loop.at.Version, value)
	}
	c.evaluator.Begin(c.loop.saved.Step)
	c.track()
	return nil
}

func (c *commit) retire(context.Context) error {
	c.retirer.begin(c.loop.saved.Step, c.background)
	c.report(func(*contract.Progress) {})
	return nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// commit makes the current version durable: its row, then its state, whose clean reply is the commit, and only then the
// consequences.
type commit struct {
	learner *learner
	name    rl.CheckpointName
	// began is the time at which the commit began, and seconds the time for which the loop waited for it; 0 while it
	// waits.
	began   time.Time
	seconds float64
	// answered is closed when the save has its reply: a path, or an error.
	answered chan struct{}
	path     string
	failed   error
}

func (c *commit) number() int64 { return c.learner.loop.at.Step }

// isLast reports whether nothing is left to do but to save.
func (c *commit) isLast() bool { return c.learner.loop.at.Step == c.learner.file.Fixed.Algorithm.Steps }

// writeRows makes durable the rows that belong to the state and the rollouts that are to be sent.
func (c *commit) writeRows(ctx context.Context) error {
	if err := c.learner.journal.WriteRowsOf(ctx, c.learner.loop.model.StatePath(c.name.String())); err != nil {
		return err
	}
	c.learner.tracks.uploads.Store()
	return nil
}

func (c *commit) submit(ctx context.Context) error {
	save, err := c.learner.loop.model.SaveState(ctx, c.name)
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

// stopWaiting notes that the loop no longer waits for the commit: its time from now on belongs to the next step.
func (c *commit) stopWaiting() { c.seconds = c.elapsed() }

func (c *commit) elapsed() float64 { return c.learner.config.Now().Sub(c.began).Seconds() }

// add adds the state to the book, and adds the time for which the loop waited for the save to the time of the step.
func (c *commit) add(context.Context) error {
	c.learner.addSaved(c.path, c.name, false)
	c.learner.loop.stored = c.learner.loop.at.Step
	seconds := cmp.Or(c.seconds, c.elapsed())
	c.learner.config.Logger.Info("state is saved", "step", c.learner.loop.at.Step, "path", c.path, "seconds", c.elapsed())
	c.learner.journal.Complete(func(row *artifacts.Row) {
		trainee.AddSave(row.Metrics, seconds)
		row.TrainingSeconds += seconds
	})
	c.learner.ledger.AddSeconds(seconds)
	c.learner.status.Update(func(p *contract.Progress) { trainee.AddSave(p.Metrics, seconds) })
	return nil
}

// checkClaims fails if a higher attempt has claimed the run, since that attempt then decides whether the state
// counts.
func (c *commit) checkClaims(ctx context.Context) error {
	if c.isLast() {
		return c.learner.journal.AwaitClaims(ctx)
	}
	return c.learner.journal.LookForClaim(ctx)
}

// cover reports to the workers that the groups of the version are durable.
func (c *commit) cover(context.Context) error {
	c.learner.loop.saved = c.learner.loop.at
	c.learner.status.Touch()
	c.learner.status.Succeed()
	c.learner.repairs.Accept()
	c.learner.table.Cover(c.learner.loop.at.Cursor)
	c.learner.server.Notify()
	return nil
}

// evaluate appends the metrics of the committed steps, scores the version if the best checkpoints are chosen by one
// of these metrics, and begins the evaluations that are due.
func (c *commit) evaluate(ctx context.Context) error {
	c.learner.journal.AppendLines(ctx)
	metric := c.learner.file.Checkpoints.KeepBestMetric
	if value, ok := c.learner.status.Progress().Metrics[metric]; ok && !c.learner.evaluator.Measures(metric) {
		c.learner.book.Score(c.learner.loop.at.Version, value)
	}
	c.learner.evaluator.Begin(c.learner.loop.saved.Step)
	c.learner.track()
	return nil
}

func (c *commit) retire(context.Context) error {
	c.learner.retirer.begin(c.learner.loop.saved.Step, c.learner.background)
	c.learner.report(func(*contract.Progress) {})
	return nil
}

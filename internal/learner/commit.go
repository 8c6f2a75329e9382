// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// commit makes the version at hand durable: its row, then its state, whose clean reply is the commit, and only then
// what follows from it.
type commit struct {
	*learner
	name rl.CheckpointName
	// began is when the commit began.
	began time.Time
	save  *trainee.Save
	path  string
}

func (c *commit) number() int64 { return c.loop.at.Step }

// isLast reports whether nothing is left to do but to save.
func (c *commit) isLast() bool { return c.loop.at.Step == c.file.Fixed.Algorithm.Steps }

// writeRows makes the rows durable that belong to the state.
func (c *commit) writeRows(ctx context.Context) error {
	return c.journal.WriteRows(ctx, c.loop.model.StatePath(c.name.String()), c.isLast())
}

func (c *commit) submit(ctx context.Context) error {
	var err error
	c.save, err = c.loop.model.SaveState(ctx, c.name.String())
	return err
}

func (c *commit) wait(ctx context.Context) error {
	var err error
	c.path, err = c.save.Wait(ctx)
	return err
}

// add adds the state to the book, and the time of its save to the step's.
func (c *commit) add(context.Context) error {
	c.addSaved(c.path, c.name, false)
	seconds := c.config.Now().Sub(c.began).Seconds()
	c.config.Logger.Info("state is saved", "step", c.loop.at.Step, "path", c.path, "seconds", seconds)
	c.journal.Complete(func(row *store.Row) {
		addSave(row.Metrics, seconds)
		row.TrainingSeconds += seconds
	})
	c.book.AddSeconds(c.loop.at.Version(), seconds)
	c.status.Update(func(p *contract.Progress) { addSave(p.Metrics, seconds) })
	return nil
}

// look makes sure that no higher attempt has claimed the run: whether the state counts would be that attempt's to
// decide.
func (c *commit) look(ctx context.Context) error {
	if c.isLast() {
		return c.journal.AwaitClaims(ctx)
	}
	return c.journal.LookForClaim(ctx)
}

// cover reports to the workers that the groups of the version are durable.
func (c *commit) cover(context.Context) error {
	c.loop.saved = c.loop.at
	c.status.Touch()
	c.status.BlockOnModel("")
	c.repairable.accept()
	c.table.Cover(c.loop.at.Cursor)
	c.server.Notify()
	return nil
}

// evaluate appends the metrics of the committed steps, scores the version by them should the best be chosen so, and
// begins the evaluations that are due.
func (c *commit) evaluate(ctx context.Context) error {
	c.journal.AppendLines()
	if err := c.journal.Transcripts.Write(ctx, c.isLast()); err != nil {
		return err
	}
	metric := c.file.Checkpoints.KeepBestMetric
	if value, ok := c.status.Progress().Metrics[metric]; ok && !c.evaluator.Measures(metric) {
		c.book.Score(c.loop.at.Version(), value)
	}
	c.evaluator.Begin(c.loop.saved.Step)
	tracked{c.learner}.advance()
	return nil
}

func (c *commit) retire(context.Context) error {
	c.retirer.begin(c.loop.saved.Step, c.background)
	c.report(func(*contract.Progress) {})
	return nil
}

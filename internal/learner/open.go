// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// modelOpening makes a model, loads the newest state or the run's initial weights into it, and saves it under its own
// name. From then on no checkpoint that an earlier model saves, late or in a superseded learner, is the newest.
type modelOpening struct {
	learner *learner
	loaded  bool
}

func (o *modelOpening) number() int64 {
	if !o.loaded {
		return -1
	}
	return o.learner.loop.at.Step
}

// list lists the states. The spending on the model before is recorded first: the groups that an endpoint rejects are
// found after the last record of a step.
func (o *modelOpening) list(ctx context.Context) error {
	o.learner.spendings.record(ctx)
	return o.learner.opener.List(ctx)
}

func (o *modelOpening) load(ctx context.Context) error {
	loaded, err := o.learner.opener.Load(ctx)
	if err != nil {
		return err
	}
	o.loaded = true
	o.learner.loop.model, o.learner.loop.at = loaded.Model, loaded.At
	o.learner.loop.submitted, o.learner.loop.stored = loaded.At.Step, loaded.At.Step
	// Without artifacts only a listing shows that a learner is superseded.
	if o.learner.loop.model != nil && o.learner.journal.HasStore() {
		o.learner.opener.Made(o.learner.loop.model.ID())
	}
	o.reportOrigin(loaded)
	err = checkScorers(ctx, o.learner)
	o.learner.spendings.record(ctx)
	if err != nil {
		return err
	}
	if loaded.At.Step > 0 && (loaded.Model.Cold || o.learner.loop.capabilities.Lacks(capability.OptimizerRestore)) {
		o.learner.loop.cold = true
	}
	return nil
}

// save saves the state that was loaded under the name of the new model.
func (o *modelOpening) save(ctx context.Context) error {
	if o.learner.batches == nil {
		return nil
	}
	name := o.learner.name(o.learner.loop.at)
	save, err := o.learner.loop.model.SaveState(ctx, name)
	if err != nil {
		return err
	}
	path, err := save.Wait(ctx)
	if err != nil {
		return err
	}
	o.learner.addSaved(path, name, false)
	return nil
}

// checkClaims makes sure that no higher attempt has claimed the run.
func (o *modelOpening) checkClaims(ctx context.Context) error {
	if o.learner.batches == nil {
		return nil
	}
	return o.learner.journal.AwaitClaims(ctx)
}

// admitWorkers saves the sampler weights again, regardless of the listed ones, and admits the workers.
func (o *modelOpening) admitWorkers(ctx context.Context) error {
	sampler := ""
	if o.learner.needsSampler(o.learner.loop.at.Step) {
		var err error
		if sampler, err = o.learner.saveSampler(ctx, o.learner.loop.at); err != nil {
			return err
		}
	}
	o.learner.loop.saved = o.learner.loop.at
	o.resume()
	if o.learner.batches != nil {
		versions, lost, err := o.learner.opener.Window(ctx, o.learner.loop.at, sampler)
		if err != nil {
			return err
		}
		if lost > 0 {
			o.learner.status.Update(func(p *contract.Progress) { p.LostVersions += lost })
		}
		o.learner.batches.Reset(rl.Position{Step: o.learner.loop.at.Step, Cursor: o.learner.loop.at.Cursor}, versions)
		o.learner.table.Cover(o.learner.loop.at.Cursor)
	}
	o.learner.table.Open()
	o.learner.server.Notify()
	return nil
}

// resume reads the records of earlier attempts about the loaded version.
func (o *modelOpening) resume() {
	at := o.learner.loop.at
	o.learner.book.Begin(at)
	o.learner.journal.Discard()
	if !o.learner.loop.begun {
		for _, result := range o.learner.journal.Evaluations() {
			o.learner.tracks.tracker.Restore(result)
		}
	}
	if known := o.learner.spendings.open(at.Version, o.learner.heldOut); !o.learner.loop.begun {
		o.countKnown(known)
	}
	var chain []artifacts.Row
	for version := range o.learner.journal.Chain(at.Version) {
		o.learner.book.Append(version.Version)
		o.score(version)
		if version.Row != nil {
			chain = append(chain, *version.Row)
		}
	}
	o.learner.tracks.tracker.Resume(at.Version, chain)
	o.learner.recorder.resumed(at, !o.learner.loop.begun)
	o.learner.evaluator.Restore(at.Step)
	o.learner.journal.Rebuild(at.Version)
	o.learner.report(func(p *contract.Progress) {
		p.ColdOptimizer = o.learner.loop.cold
		if !o.learner.loop.begun {
			p.FromStep, o.learner.loop.begun = at.Step, true
		}
	})
}

// score scores a saved version by the metrics of its step, if the best checkpoints are chosen by one of them.
func (o *modelOpening) score(a artifacts.Ancestor) {
	metric := o.learner.file.Checkpoints.KeepBestMetric
	if a.Row == nil || a.Row.State == "" || metric == "" || o.learner.evaluator.Measures(metric) {
		return
	}
	version, known := o.learner.book.Version(a.Step)
	if value, ok := a.Metrics()[metric]; ok && known {
		o.learner.book.Score(version, value)
	}
}

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

// modelOpening makes a model, loads the newest state into it, or what the run begins with, and saves that under its
// own name: from then on nothing that an earlier model saves, late or in a superseded learner, is the newest.
type modelOpening struct {
	*learner
	loaded bool
}

func (o *modelOpening) number() int64 {
	if !o.loaded {
		return -1
	}
	return o.loop.at.Step
}

// list lists the states. What was spent on the model before is recorded first: the groups that an endpoint rejects are
// found after the last record of a step.
func (o *modelOpening) list(ctx context.Context) error {
	o.spendings.record(ctx)
	return o.opener.List(ctx)
}

func (o *modelOpening) load(ctx context.Context) error {
	loaded, err := o.opener.Load(ctx)
	if err != nil {
		return err
	}
	o.loaded = true
	o.loop.model, o.loop.at = loaded.Model, loaded.At
	o.loop.submitted, o.loop.stored = loaded.At.Step, loaded.At.Step
	if o.loop.model != nil && o.journal.HasStore() { // without artifacts only a listing shows that a learner is superseded
		o.opener.Made(o.loop.model.ID())
	}
	o.reportOrigin(loaded)
	err = checkScorers(ctx, o.learner)
	o.spendings.record(ctx)
	if err != nil {
		return err
	}
	if loaded.At.Step > 0 && (loaded.Model.Cold || o.loop.capabilities.Lacks(capability.OptimizerRestore)) {
		o.loop.cold = true
	}
	return nil
}

// save saves the state that was loaded under the name of the new model.
func (o *modelOpening) save(ctx context.Context) error {
	if o.batches == nil {
		return nil
	}
	name := o.name(o.loop.at)
	save, err := o.loop.model.SaveState(ctx, name)
	if err != nil {
		return err
	}
	path, err := save.Wait(ctx)
	if err != nil {
		return err
	}
	o.addSaved(path, name, false)
	return nil
}

// checkClaims makes sure that no higher attempt has claimed the run.
func (o *modelOpening) checkClaims(ctx context.Context) error {
	if o.batches == nil {
		return nil
	}
	return o.journal.AwaitClaims(ctx)
}

// admitWorkers saves the sampler weights anew, regardless of the listed ones, and lets the workers in.
func (o *modelOpening) admitWorkers(ctx context.Context) error {
	sampler := ""
	if o.needsSampler(o.loop.at.Step) {
		var err error
		if sampler, err = o.saveSampler(ctx, o.loop.at); err != nil {
			return err
		}
	}
	o.loop.saved = o.loop.at
	o.resume()
	if o.batches != nil {
		versions, lost, err := o.opener.Window(ctx, o.loop.at, sampler)
		if err != nil {
			return err
		}
		if lost > 0 {
			o.status.Update(func(p *contract.Progress) { p.LostVersions += lost })
		}
		o.batches.Reset(rl.Position{Step: o.loop.at.Step, Cursor: o.loop.at.Cursor}, versions)
		o.table.Cover(o.loop.at.Cursor)
	}
	o.table.Open()
	o.server.Notify()
	return nil
}

// resume reads what earlier attempts recorded of the version that was loaded.
func (o *modelOpening) resume() {
	at := o.loop.at
	o.book.Begin(at)
	o.journal.Discard()
	if !o.loop.begun {
		for _, result := range o.journal.Evaluations() {
			o.tracks.tracker.Restore(result)
		}
	}
	if known := o.spendings.open(at.Version, o.heldOut); !o.loop.begun {
		o.countKnown(known)
	}
	var chain []artifacts.Row
	for version := range o.journal.Chain(at.Version) {
		o.book.Append(version.Version)
		o.score(version)
		if version.Row != nil {
			chain = append(chain, *version.Row)
		}
	}
	o.tracks.tracker.Resume(at.Version, chain)
	o.recorder.resumed(at, !o.loop.begun)
	o.evaluator.Restore(at.Step)
	o.journal.Rebuild(at.Version)
	o.report(func(p *contract.Progress) {
		p.ColdOptimizer = o.loop.cold
		if !o.loop.begun {
			p.FromStep, o.loop.begun = at.Step, true
		}
	})
}

// score scores a saved version by the metrics of its step, should the best be chosen by them.
func (o *modelOpening) score(a artifacts.Ancestor) {
	metric := o.file.Checkpoints.KeepBestMetric
	if a.Row == nil || a.Row.State == "" || metric == "" || o.evaluator.Measures(metric) {
		return
	}
	version, known := o.book.Version(a.Step)
	if value, ok := a.Metrics()[metric]; ok && known {
		o.book.Score(version, value)
	}
}

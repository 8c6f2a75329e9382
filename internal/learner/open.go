// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// opening makes a model, loads the newest state into it, or what the run begins with, and saves that under
// its own name: from then on nothing that an earlier model saves, late or in a superseded learner, is the newest.
type opening struct {
	*learner
	loaded bool
}

func (o *opening) number() int64 {
	if !o.loaded {
		return -1
	}
	return o.at.step
}

// list unloads the models of earlier attempts and reads which states there are.
func (o *opening) list(ctx context.Context) error {
	runs, err := o.unloadEarlier(ctx)
	if err != nil {
		return err
	}
	return o.readStates(ctx, runs)
}

func (o *opening) load(ctx context.Context) error {
	if err := o.loadNewest(ctx); err != nil {
		return err
	}
	o.loaded = true
	return nil
}

// save saves the state that was loaded under the name of the new model.
func (o *opening) save(ctx context.Context) error {
	if o.train == nil {
		return nil
	}
	name := o.name(o.at, o.model.Number)
	save, err := o.model.SaveState(ctx, name.String())
	if err != nil {
		return err
	}
	path, err := save.Wait(ctx)
	if err != nil {
		return err
	}
	o.enter(path, name, false)
	return nil
}

func (o *opening) look(ctx context.Context) error {
	if o.train == nil {
		return nil
	}
	return o.insist(ctx, "looking for a higher claim", o.lookForClaim)
}

// admit saves the sampler weights anew, whatever is listed, and lets the workers in.
func (o *opening) admit(ctx context.Context) error {
	sampler, err := o.saveSampler(ctx, o.at)
	if err != nil {
		return err
	}
	o.saved = o.at
	o.resume()
	if o.train != nil {
		versions, err := o.window(ctx, sampler)
		if err != nil {
			return err
		}
		o.train.Reset(rl.Position{Step: o.at.step, Cursor: o.at.cursor}, versions)
		o.board.Cover(o.at.cursor)
	}
	o.board.Open()
	o.server.Notify()
	return nil
}

// saveSampler saves the sampler weights of the version in the model.
func (l *learner) saveSampler(ctx context.Context, at position) (string, error) {
	if given := l.givenSampler(); given != "" {
		l.enter(given, l.name(at, 0), true)
		return given, nil
	}
	name := l.name(at, l.model.Number)
	path, err := l.model.SaveSampler(ctx, name.String())
	if err != nil {
		return "", err
	}
	l.enter(path, name, true)
	return path, nil
}

// first makes the model that the run begins with; none when a run that only evaluates is given sampler
// weights, which are used as they are.
func (l *learner) first(ctx context.Context) (*trainee.Model, error) {
	if l.givenSampler() != "" {
		return nil, nil
	}
	return l.opener.Fresh(ctx, l.file.Fixed.InitFrom)
}

// givenSampler is the path of the sampler weights that the run is to evaluate, if it is given any.
func (l *learner) givenSampler() string {
	init := l.file.Fixed.InitFrom
	if l.train != nil || init == nil {
		return ""
	}
	if path, err := tinker.ParsePath(init.Checkpoint); err != nil || path.Kind != tinker.KindSampler {
		return ""
	}
	return init.Checkpoint
}

// resume takes up what earlier attempts wrote down of the version that was loaded.
func (l *learner) resume() {
	l.mu.Lock()
	l.chain = l.ledger.Chain(l.at.version(), l.at.parent.Short())
	l.mu.Unlock()
	l.rows, l.lines = nil, nil
	l.restoreUsage()
	l.restoreBest()
	if l.store != nil {
		if err := l.store.Rebuild(l.at.step, l.at.lineage.String()); err != nil {
			l.config.Logger.Warn("metrics are not rebuilt", "err", err)
		}
	}
	l.report(func(p *contract.Progress) {
		p.ColdOptimizer = l.cold
		if !l.begun {
			p.FromStep, l.begun = l.at.step, true
		}
	})
}

// loadNewest chooses what to load. A state of a higher attempt means that this one is superseded.
func (l *learner) loadNewest(ctx context.Context) error {
	states := l.ledger.States()
	if l.train == nil || len(states) == 0 {
		model, err := l.first(ctx)
		if err != nil {
			return err
		}
		l.model, l.at = model, position{lineage: rl.Genesis(l.file.SpecDigest)}
		return nil
	}
	if highest := states[0].Name.Attempt; highest > l.file.Attempt {
		return fmt.Errorf("attempt %d: %w: %d", l.file.Attempt, errFenced, highest)
	}
	model, state, err := l.opener.Resume(ctx, states)
	if err != nil {
		return err
	}
	at, err := positionOf(state.Name)
	if err != nil {
		return err
	}
	l.model, l.at = model, at
	l.cold = l.cold || at.step > 0 && (model.Cold || l.capabilities.Lacks(capability.OptimizerRestore))
	l.config.Logger.Info("state is loaded", "path", state.Path, "step", at.step)
	return nil
}

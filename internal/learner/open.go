// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// begin does what an attempt does once: it claims its number, finds out whether the endpoint can serve the
// run, and gets itself sessions.
func (l *learner) begin(ctx, soft context.Context) error {
	if l.file.ArtifactsDir != "" {
		if err := l.claim(soft); err != nil {
			return err
		}
	}
	if err := l.fault(ctx, "open.claimed", -1); err != nil {
		return err
	}
	if err := l.pinTokenizer(soft); err != nil {
		return err
	}
	if err := l.checkEndpoint(soft); err != nil {
		return err
	}
	if err := l.checkCapabilities(soft); err != nil {
		return err
	}
	if err := l.fault(ctx, "open.probed", -1); err != nil {
		return err
	}
	tags := []string{"tinker-operator"}
	models := &keeper{api: l.client, alive: ctx, tasks: &l.tasks, tags: tags, logger: l.config.Logger}
	l.opener = &trainee.Opener{
		API: l.client, Logger: l.config.Logger, Session: models.get, RunUID: l.file.Run.UID, Attempt: l.file.Attempt,
		Base: l.file.Fixed.Model, RequireOptimizer: l.file.RequireOptimizer, Lost: models.drop, Check: l.checkOptimizer,
	}
	rollouts := &keeper{
		api: l.client, alive: ctx, tasks: &l.tasks, tags: tags, logger: l.config.Logger, changed: l.useSession,
	}
	if l.store != nil {
		rollouts.adopt(soft, l.store.Session())
		l.board.Expect(l.store.Workers())
		l.tasks.Go(func() { l.noteWorkers(ctx, l.store) })
	}
	if _, err := rollouts.get(soft); err != nil {
		return err
	}
	l.tasks.Go(func() { rollouts.keep(ctx, l.config.Timing.Tick) })
	return nil
}

// useSession tells the workers, and the attempt after this one, in which session groups are played.
func (l *learner) useSession(session string) {
	l.board.SetSession(session)
	if l.store == nil {
		return
	}
	if err := l.store.SetSession(session); err != nil {
		l.config.Logger.Warn("session is not noted", "err", err)
	}
}

// claim marks the attempt as begun before anything is listed. While the store does not answer there is
// nothing to do but to try again.
func (l *learner) claim(ctx context.Context) error {
	return l.insist(ctx, "claiming", func() error {
		var err error
		if l.store == nil {
			if l.store, err = store.Open(l.file.ArtifactsDir, l.file.Run.UID); err != nil {
				return err
			}
		}
		if err := l.store.Claim(l.file.Attempt, l.config.Identity); err != nil {
			return err
		}
		return l.look()
	})
}

// insist repeats what needs the artifact store until the store answers. Being fenced is an answer.
func (l *learner) insist(ctx context.Context, what string, act func() error) error {
	const pause = time.Second
	for {
		err := act()
		if err == nil || errors.Is(err, errFenced) || errors.Is(err, store.ErrClaimed) {
			l.status.blockOnStore("")
			return err
		}
		l.config.Logger.Warn("artifact store does not answer", "act", what, "err", err)
		l.status.blockOnStore(err.Error())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look stops the learner when a higher attempt has claimed the run.
func (l *learner) look() error {
	if l.store == nil {
		return nil
	}
	highest, err := l.store.HighestClaim()
	if err != nil {
		return err
	}
	if highest > l.file.Attempt {
		return fmt.Errorf("attempt %d: %w: %d", l.file.Attempt, errFenced, highest)
	}
	return nil
}

// checkEndpoint refuses a base model that the endpoint does not train.
func (l *learner) checkEndpoint(ctx context.Context) error {
	capabilities, err := l.client.Capabilities(ctx)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUnsupported:
		return nil // the endpoint does not say
	}
	if err != nil {
		return fmt.Errorf("asking for capabilities: %w", err)
	}
	name := l.file.Fixed.Model.Name
	for _, model := range capabilities.SupportedModels {
		if model.ModelName != name {
			continue
		}
		if model.Trainable != nil && !*model.Trainable {
			return unsupported(reasonModelUnknown, "The endpoint cannot train %s: choose another model.name", name)
		}
		return nil
	}
	if len(capabilities.SupportedModels) == 0 {
		return nil
	}
	return unsupported(reasonModelUnknown, "The endpoint does not know the model %s: choose another model.name, or another tinker.baseURL", name)
}

// open makes a model and loads the newest state into it, or what the run begins with, and saves that under
// its own name: from then on nothing that an earlier model saves, late or by a zombie, is the newest.
func (l *learner) open(ctx, soft context.Context) error {
	runs, err := l.unloadEarlier(soft)
	if err != nil {
		return err
	}
	if err := l.list(soft, runs); err != nil {
		return err
	}
	if err := l.fault(ctx, "open.listed", -1); err != nil {
		return err
	}
	if err := l.load(soft); err != nil {
		return err
	}
	if err := l.fault(ctx, "open.loaded", l.at.step); err != nil {
		return err
	}
	if l.train == nil {
		return l.opened(ctx)
	}
	name := l.name(l.at, l.model.Number)
	path, err := l.model.SaveState(ctx, name.String(), func() error { return nil })
	if err != nil {
		return err
	}
	l.enter(path, name, false)
	if err := l.fault(ctx, "open.saved", l.at.step); err != nil {
		return err
	}
	if err := l.insist(ctx, "looking for a higher claim", l.look); err != nil {
		return err
	}
	return l.opened(ctx)
}

// opened saves the sampler weights anew, whatever is listed, and lets the workers in.
func (l *learner) opened(ctx context.Context) error {
	sampler, err := l.saveSampler(ctx, l.at)
	if err != nil {
		return err
	}
	l.saved = l.at
	l.resume()
	if l.train != nil {
		versions, err := l.window(ctx, sampler)
		if err != nil {
			return err
		}
		l.train.Reset(rl.Position{Step: l.at.step, Cursor: l.at.cursor}, versions)
		l.board.Cover(l.at.cursor)
	}
	l.board.Open()
	l.server.Notify()
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

// load chooses what to load. A state of a higher attempt means that this one is superseded.
func (l *learner) load(ctx context.Context) error {
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

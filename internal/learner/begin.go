// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// beginning is what an attempt does once: it claims its number, finds out whether the endpoint can serve the
// run, and makes its sessions.
type beginning struct{ *learner }

func (*beginning) number() int64 { return -1 }

// claim marks the attempt as begun before anything is listed. While the store does not answer there is
// nothing to do but to try again.
func (b *beginning) claim(ctx context.Context) error {
	if b.file.ArtifactsDir == "" {
		return nil
	}
	return b.insist(ctx, "claiming", func() error {
		var err error
		if b.store == nil {
			if b.store, err = store.Open(b.file.ArtifactsDir, b.file.Run.UID); err != nil {
				return err
			}
		}
		if err := b.store.Claim(b.file.Attempt, b.config.Identity); err != nil {
			return err
		}
		return b.lookForClaim()
	})
}

// check finds out whether the endpoint can serve the run.
func (b *beginning) check(ctx context.Context) error {
	if err := b.checkEndpoint(ctx); err != nil {
		return err
	}
	return b.checkCapabilities(ctx)
}

// connect makes the session that groups are sampled in, or takes over that of the attempt before.
func (b *beginning) connect(ctx context.Context) error {
	if b.store != nil {
		b.rollouts.adopt(ctx, b.store.Session())
		b.board.Expect(b.store.Workers())
		b.background(func(ctx context.Context) { b.noteWorkers(ctx, b.store) })
	}
	if _, err := b.rollouts.get(ctx); err != nil {
		return err
	}
	b.background(func(ctx context.Context) { b.rollouts.keep(ctx, b.config.Timing.Tick) })
	return nil
}

// prepareSessions prepares the session that models are made in and the one that groups are sampled in; both
// are kept alive until ctx ends.
func (l *learner) prepareSessions(ctx context.Context) {
	tags := []string{"tinker-operator"}
	models := &keeper{api: l.client, alive: ctx, tasks: &l.tasks, tags: tags, logger: l.config.Logger}
	l.opener = &trainee.Opener{
		API: l.client, Logger: l.config.Logger, Session: models.get, RunUID: l.file.Run.UID, Attempt: l.file.Attempt,
		Base: l.file.Fixed.Model, RequireOptimizer: l.file.RequireOptimizer, Lost: models.drop, Check: l.checkOptimizer,
	}
	l.rollouts = &keeper{
		api: l.client, alive: ctx, tasks: &l.tasks, tags: tags, logger: l.config.Logger, changed: l.useSession,
	}
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
func (l *learner) lookForClaim() error {
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// bookkeeping finds out about listings and times to live.
func (l *lab) bookkeeping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()
	if l.wants(ListModels) {
		l.listModels(ctx)
	}
	if l.wants(UserMetadata) {
		l.userMetadata(ctx)
	}
	if l.wants(TTL) || l.wants(ListCheckpoints) {
		l.checkpoints(ctx)
	}
}

func (l *lab) listModels(ctx context.Context) {
	for run, err := range l.API.TrainingRuns(ctx) {
		if err != nil {
			l.conclude(ListModels, err)
			return
		}
		if run.TrainingRunID == l.first.ID() {
			l.find(ListModels, Supported, "")
			return
		}
	}
	l.find(ListModels, Ignored, "the listing lacks a model that was just made")
}

func (l *lab) userMetadata(ctx context.Context) {
	run, err := l.API.TrainingRun(ctx, l.first.ID())
	switch {
	case err != nil:
		l.conclude(UserMetadata, err)
	case maps.Equal(run.UserMetadata, l.UserMetadata):
		l.find(UserMetadata, Supported, "")
	default:
		l.find(UserMetadata, Ignored, "what was noted about a model is not given back")
	}
}

// checkpoints gives what was saved another time to live and looks for it in the listing.
func (l *lab) checkpoints(ctx context.Context) {
	path := cmp.Or(l.state, l.sampler)
	ttlErr := l.API.SetTTL(ctx, path, new(2*hour))
	if ttlErr != nil {
		l.conclude(TTL, ttlErr)
	}
	found, err := l.listed(ctx, path)
	switch {
	case err != nil:
		l.conclude(ListCheckpoints, err)
	case found == nil:
		l.find(ListCheckpoints, Ignored, "the listing lacks a checkpoint that was just saved")
	default:
		l.find(ListCheckpoints, Supported, "")
	}
	switch {
	case ttlErr != nil:
	case found == nil:
		l.find(TTL, Unknown, "the endpoint takes it, and no listing shows it")
	case found.ExpiresAt == nil || found.ExpiresAt.Sub(found.Time) < time.Hour+time.Minute:
		l.find(TTL, Ignored, "the listing does not show the time to live that was set")
	default:
		l.find(TTL, Supported, "")
	}
}

func (l *lab) listed(ctx context.Context, path string) (*tinker.Checkpoint, error) {
	for checkpoint, err := range l.API.Checkpoints(ctx) {
		if err != nil {
			return nil, err
		}
		if checkpoint.TinkerPath == path {
			return &checkpoint, nil
		}
	}
	return nil, nil
}

// unload finds out whether models can be unloaded, by the first.
func (l *lab) unload(ctx context.Context) {
	if !l.wants(UnloadModel) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()
	if err := l.API.UnloadModel(ctx, l.first.ID()); err != nil {
		l.conclude(UnloadModel, err)
		return
	}
	l.find(UnloadModel, Supported, "")
	l.models = slices.DeleteFunc(l.models, func(id string) bool { return id == l.first.ID() })
}

// clean removes what the probe made, as far as the server lets it. What is left has no more than an hour to
// live, or is idle.
func (l *lab) clean(ctx context.Context) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, path := range []string{l.sampler, l.state} {
		if path == "" {
			continue
		}
		err := l.API.DeleteCheckpoint(ctx, path)
		switch {
		case i == 0 || !l.wants(DeleteCheckpoint):
		case err != nil:
			l.conclude(DeleteCheckpoint, err)
		default:
			l.find(DeleteCheckpoint, Supported, "")
		}
	}
	for _, id := range l.models {
		if l.known(UnloadModel) == Unsupported || ctx.Err() != nil {
			return
		}
		_ = l.API.UnloadModel(ctx, id)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// listingCheck checks listings, metadata and TTLs.
type listingCheck struct {
	*check
}

// checkListings checks listings, metadata and TTLs.
func (k *check) checkListings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.Patience)
	defer cancel()
	l := listingCheck{k}
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

func (l listingCheck) listModels(ctx context.Context) {
	for run, err := range l.API.TrainingRuns(ctx) {
		if err != nil {
			l.recordError(ListModels, err)
			return
		}
		if run.TrainingRunID == l.first.ID() {
			l.record(ListModels, Supported, "")
			return
		}
	}
	l.record(ListModels, Ignored, "the listing lacks a model that was just created")
}

func (l listingCheck) userMetadata(ctx context.Context) {
	run, err := l.API.TrainingRun(ctx, l.first.ID())
	switch {
	case err != nil:
		l.recordError(UserMetadata, err)
	case maps.Equal(run.UserMetadata, l.UserMetadata):
		l.record(UserMetadata, Supported, "")
	default:
		l.record(UserMetadata, Ignored, "the metadata of a model is not returned")
	}
}

// checkpoints changes the TTL of the saved state and looks for the state in the listing.
func (l listingCheck) checkpoints(ctx context.Context) {
	path := cmp.Or(l.state, l.sampler)
	ttlErr := l.API.SetTTL(ctx, path, new(2*hour))
	if ttlErr != nil {
		l.recordError(TTL, ttlErr)
	}
	found, err := l.find(ctx, path)
	switch {
	case err != nil:
		l.recordError(ListCheckpoints, err)
	case found == nil:
		l.record(ListCheckpoints, Ignored, "the listing lacks a checkpoint that was just saved")
	default:
		l.record(ListCheckpoints, Supported, "")
	}
	switch {
	case ttlErr != nil:
	case found == nil:
		l.record(TTL, Unknown, "the endpoint accepts it, and no listing shows it")
	case found.ExpiresAt == nil || found.ExpiresAt.Sub(found.Time) < time.Hour+time.Minute:
		l.record(TTL, Ignored, "the listing does not show the TTL that was set")
	default:
		l.record(TTL, Supported, "")
	}
}

func (l listingCheck) find(ctx context.Context, path string) (*tinker.Checkpoint, error) {
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

// checkUnload checks whether models can be unloaded, by unloading the first.
func (k *check) checkUnload(ctx context.Context) {
	if !k.wants(UnloadModel) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.Patience)
	defer cancel()
	if err := k.API.UnloadModel(ctx, k.first.ID()); err != nil {
		k.recordError(UnloadModel, err)
		return
	}
	k.record(UnloadModel, Supported, "")
	k.forget(k.first.ID())
}

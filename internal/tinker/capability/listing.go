// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"cmp"
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// listingCheck checks listings, metadata and TTLs.
type listingCheck struct {
	api      *client.Client
	findings *findings
	// model is the ID of the first model, metadata its metadata, and checkpoint the path of its newest checkpoint.
	model      string
	metadata   tinker.Metadata
	checkpoint string
}

// checkListings checks listings, metadata and TTLs.
func (k *check) checkListings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.trainer.Patience)
	defer cancel()
	l := listingCheck{api: k.trainer.API, findings: k.findings, model: k.first.ID(), metadata: k.trainer.UserMetadata,
		checkpoint: cmp.Or(k.trainer.state, k.sampler)}
	if l.findings.wants(ListModels) {
		l.listModels(ctx)
	}
	if l.findings.wants(UserMetadata) {
		l.userMetadata(ctx)
	}
	if l.findings.wants(TTL) || l.findings.wants(ListCheckpoints) {
		l.checkpoints(ctx)
	}
}

func (l listingCheck) listModels(ctx context.Context) {
	for run, err := range l.api.TrainingRuns(ctx) {
		if err != nil {
			l.findings.recordError(ListModels, err)
			return
		}
		if run.TrainingRunID == l.model {
			l.findings.record(ListModels, Supported, "")
			return
		}
	}
	l.findings.record(ListModels, Ignored, "the listing lacks a model that was just created")
}

func (l listingCheck) userMetadata(ctx context.Context) {
	run, err := l.api.TrainingRun(ctx, l.model)
	switch {
	case err != nil:
		l.findings.recordError(UserMetadata, err)
	case contains(run.UserMetadata, l.metadata):
		l.findings.record(UserMetadata, Supported, "")
	default:
		l.findings.record(UserMetadata, Ignored, "the metadata of a model is not returned")
	}
}

// contains reports whether metadata have all given values. They may have others, since a broker adds some.
func contains(metadata, given tinker.Metadata) bool {
	for name, value := range given {
		if metadata[name] != value {
			return false
		}
	}
	return true
}

// checkpoints changes the TTL of the saved state and looks for the state in the listing.
func (l listingCheck) checkpoints(ctx context.Context) {
	ttlErr := l.api.SetTTL(ctx, l.checkpoint, new(2*hour))
	if ttlErr != nil {
		l.findings.recordError(TTL, ttlErr)
	}
	found, err := l.find(ctx)
	switch {
	case err != nil:
		l.findings.recordError(ListCheckpoints, err)
	case found == nil:
		l.findings.record(ListCheckpoints, Ignored, "the listing lacks a checkpoint that was just saved")
	default:
		l.findings.record(ListCheckpoints, Supported, "")
	}
	switch {
	case ttlErr != nil:
	case found == nil:
		l.findings.record(TTL, Unknown, "the endpoint accepts it, and no listing shows it")
	case found.ExpiresAt == nil || found.ExpiresAt.Sub(found.Time) < time.Hour+time.Minute:
		l.findings.record(TTL, Ignored, "the listing does not show the TTL that was set")
	default:
		l.findings.record(TTL, Supported, "")
	}
}

func (l listingCheck) find(ctx context.Context) (*tinker.Checkpoint, error) {
	for checkpoint, err := range l.api.Checkpoints(ctx) {
		if err != nil {
			return nil, err
		}
		if checkpoint.TinkerPath == l.checkpoint {
			return &checkpoint, nil
		}
	}
	return nil, nil
}

// checkUnload checks whether models can be unloaded, by unloading the first.
func (k *check) checkUnload(ctx context.Context) {
	if !k.findings.wants(UnloadModel) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.trainer.Patience)
	defer cancel()
	if err := k.trainer.API.UnloadModel(ctx, k.first.ID()); err != nil {
		k.findings.recordError(UnloadModel, err)
		return
	}
	k.findings.record(UnloadModel, Supported, "")
	k.trainer.forget(k.first.ID())
}

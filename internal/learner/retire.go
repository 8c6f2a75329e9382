// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// expirer sets the time to live of checkpoints.
type expirer interface {
	SetTTL(ctx context.Context, path string, seconds *int64) error
}

// retirer sets a time to live on checkpoints that are out of use.
type retirer struct {
	api  expirer
	book *checkpoints.Book
	// outstanding lists the versions that wait for their evaluation.
	outstanding func() []rl.Version
	// retired is called with the checkpoints that were retired in a round.
	retired func(ctx context.Context, paths []string)
	logger  *slog.Logger
	now     func() time.Time
	// busy is full while a round is in progress.
	busy chan struct{}
}

// begin begins a round beside the loop; no step waits for it. It does nothing while a round is in progress. The next
// round retries checkpoints that failed or were left out.
func (r *retirer) begin(saved int64, background func(task func(context.Context))) {
	select {
	case r.busy <- struct{}{}:
	default:
		return
	}
	due := r.book.Retirements(saved, false, r.outstanding())
	background(func(ctx context.Context) {
		defer func() { <-r.busy }()
		r.retire(ctx, due)
	})
}

// finish retires the remaining checkpoints at the end of the run, since a completed run does not resume.
func (r *retirer) finish(ctx context.Context, saved int64) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
		r.retire(ctx, r.book.Retirements(saved, true, r.outstanding()))
	case <-ctx.Done():
	}
}

func (r *retirer) retire(ctx context.Context, due []checkpoints.Retirement) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var paths []string
	defer func() { r.retired(ctx, paths) }()
	for _, d := range due {
		if err := r.api.SetTTL(ctx, d.Path, &d.TTLSeconds); err != nil && failure.CodeOf(err) != failure.Missing {
			r.logger.Warn("checkpoint is not retired", "path", d.Path, "err", err)
			continue
		}
		r.book.Retired(d, r.now())
		paths = append(paths, d.Path)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// failurePause is how long a lease that cannot be played is kept before it is given back: it may come again
// at once.
const failurePause = time.Second

// acquireAll leases groups and starts to play them, until ctx ends. An error is final.
func (w *Worker) acquireAll(ctx context.Context) error {
	for {
		free, err := w.awaitRoom(ctx)
		if err != nil {
			return nil
		}
		leases, err := w.config.Learner.Acquire(ctx, free)
		if exchange.IsFinal(err) {
			return err
		}
		if err != nil && pause(ctx, callPause) != nil {
			return nil
		}
		for _, lease := range leases {
			w.start(ctx, lease)
		}
	}
}

// awaitRoom waits until there is room, and says for how many episodes. An error is the context's.
func (w *Worker) awaitRoom(ctx context.Context) (int, error) {
	for {
		changed := w.changed.next()
		if free := w.room(); free > 0 && ctx.Err() == nil {
			return free, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// room is for how many episodes leases are asked for. A worker that has any room has room for one group,
// whatever its size: members that do not fit wait at the gate, and the credits do not lie idle while the
// last members of other groups are played.
func (w *Worker) room() int {
	repertoire := w.repertoire.Load()
	if repertoire == nil {
		return 0
	}
	free := w.episodes.currentLimit() - w.underway()
	if free <= 0 {
		return 0
	}
	return max(free, repertoire.largestGroup())
}

// underway is how many members of leased groups have no outcome yet.
func (w *Worker) underway() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	members := 0
	for _, p := range w.playing {
		members += p.currentLease().GroupSize - int(p.progress.MembersDone.Load())
	}
	return members
}

// setCredits bounds the episodes and the requests under way.
func (w *Worker) setCredits(credits int) {
	if w.episodes.currentLimit() != credits {
		w.config.Logger.Debug("credits changed", "credits", credits)
	}
	w.episodes.setLimit(credits)
	w.samples.setLimit(credits)
	w.changed.raise()
}

// learn takes what the learner says is played. An error is a *PlayError.
func (w *Worker) learn(play []byte) error {
	known := w.repertoire.Load()
	if known != nil && bytes.Equal(known.encoded, play) {
		return nil
	}
	learnt, err := newRepertoire(play, w.config.Renderer, &w.built)
	if err != nil {
		return err
	}
	w.repertoire.Store(learnt)
	w.changed.raise()
	return nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// failurePause is the pause before a lease that cannot be played is released: the same lease may come again at once.
const failurePause = time.Second

// acquireAll acquires leases and starts to play them, until ctx ends. An error is final.
func (w *Worker) acquireAll(ctx context.Context) error {
	for {
		free, err := wait.For(ctx, &w.changes, func() (int, bool) {
			free := w.room()
			return free, free > 0 && ctx.Err() == nil
		})
		if err != nil {
			return nil
		}
		hellos := w.active.saidHello()
		leases, err := w.config.Learner.Acquire(ctx, free)
		if exchange.IsFinal(err) {
			return err
		}
		if err != nil && wait.Sleep(ctx, callPause) != nil {
			return nil
		}
		for _, lease := range leases {
			w.start(ctx, lease, hellos)
		}
	}
}

// room returns the number of episodes for which leases are acquired. A worker with any room has room for a group of
// any size: members that do not fit wait at the gate, so that no credit is idle while the last members of other
// groups are played.
func (w *Worker) room() int {
	play := w.play.Load()
	if play == nil || play != w.prepared.Load() {
		return 0
	}
	free := w.episodes.currentLimit() - w.active.pendingMembers()
	if free <= 0 {
		return 0
	}
	return max(free, play.largestGroup())
}

// setCredits bounds the episodes and the requests in flight.
func (w *Worker) setCredits(credits int) {
	if w.episodes.currentLimit() != credits {
		w.config.Logger.Debug("credits changed", "credits", credits)
	}
	w.episodes.setLimit(credits)
	w.samples.setLimit(credits)
	w.changes.Notify()
}

// setPlay takes over the environments and settings that the learner reports. An error is a *ConfigError.
func (w *Worker) setPlay(encoded []byte) error {
	known := w.play.Load()
	if known != nil && bytes.Equal(known.encoded, encoded) {
		return nil
	}
	play, err := newPlayConfig(encoded, &w.format, &w.built)
	if err != nil {
		return err
	}
	w.play.Store(play)
	w.changes.Notify()
	return nil
}

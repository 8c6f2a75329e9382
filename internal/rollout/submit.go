// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// callPause keeps a call that fails at once from being repeated in a loop. The back-off proper is the
// exchange's, which dials.
const callPause = 100 * time.Millisecond

// submitAll submits what is in the outbox until ctx ends. An error is final.
func (w *Worker) submitAll(ctx context.Context) error {
	for {
		key, err := w.outbox.next(ctx)
		if err != nil {
			return nil
		}
		if err := w.submit(ctx, key); exchange.IsFinal(err) {
			return err
		}
	}
}

// submit submits one group and notes what became of it. The group is held on whatever the answer.
func (w *Worker) submit(ctx context.Context, key rl.Key) error {
	group, ok, err := w.held.Encoded(key)
	if err != nil {
		w.config.Logger.Error("a held group is lost", "slot", key.Slot, "error", err)
	}
	if !ok {
		w.forget(key, nil)
		return nil
	}
	reply, err := w.config.Learner.Submit(ctx, group)
	w.forget(key, nil)
	if err != nil {
		if ctx.Err() == nil {
			w.config.Logger.Warn("submitting a group", "slot", key.Slot, "error", err)
			w.outbox.add(key)
		}
		noteGivenUp(w.config.Logger, w.held.Offered(key, false))
		// What ends the pause ends the caller, too.
		_ = pause(ctx, callPause)
		return err
	}
	w.config.Logger.Debug("group submitted", "slot", key.Slot, "verdict", reply.Status.String())
	if reply.Status == exchange.Invalid {
		w.refused(key, group.Outcome, reply.Field)
		return nil
	}
	// Closed and Stale ones are of no use to this learner, and the first to go for room, like those it has.
	noteGivenUp(w.config.Logger, w.held.Offered(key, true))
	return nil
}

// refused makes a tombstone of a group that the learner does not accept, and submits that.
func (w *Worker) refused(key rl.Key, outcome rl.Outcome, field string) {
	w.config.Logger.Error("the learner refuses a group", "slot", key.Slot, "outcome", outcome.String(), "field", field)
	if outcome == rl.InvalidTokens {
		w.held.Offered(key, true)
		return
	}
	w.replace(key, rl.InvalidTokens, "the learner refuses "+field)
	w.outbox.add(key)
}

// replace puts a tombstone in the place of a stored group.
func (w *Worker) replace(key rl.Key, outcome rl.Outcome, reason string) {
	group, ok, err := w.held.Group(key)
	if err != nil || !ok {
		w.config.Logger.Error("reading a group that was rejected", "slot", key.Slot, "err", err)
		return
	}
	w.condemn(group, outcome, reason)
}

func noteGivenUp(logger *slog.Logger, keys []rl.Key) {
	if len(keys) > 0 {
		logger.Warn("groups were given up for want of room", "count", len(keys), "highest", keys[0].Slot)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// callPause keeps a call that fails at once from being repeated in a loop. The exchange, which dials, has the
// real back-off.
const callPause = 100 * time.Millisecond

// submitter stores finished groups and submits them.
type submitter struct {
	learner Learner
	groups  *groupstore.Store
	active  *activeGroups
	outbox  outbox
	logger  *slog.Logger
}

// run submits the groups in the outbox until ctx ends. An error is final.
func (s *submitter) run(ctx context.Context) error {
	for {
		key, err := s.outbox.next(ctx)
		if err != nil {
			return nil
		}
		if err := s.submit(ctx, key); exchange.IsFinal(err) {
			return err
		}
	}
}

// submit submits one group and notes the reply. The group stays stored after any reply.
func (s *submitter) submit(ctx context.Context, key rl.Key) error {
	group, ok, err := s.groups.Encoded(key)
	if err != nil {
		s.logger.Error("a stored group is lost", "slot", key.Slot, "err", err)
	}
	if !ok {
		s.active.remove(key)
		return nil
	}
	if err := s.reportUnanswered(ctx, key); err != nil {
		s.outbox.add(key)
		_ = wait.Sleep(ctx, callPause)
		return err
	}
	reply, err := s.learner.Submit(ctx, group)
	s.active.remove(key)
	if err != nil {
		if ctx.Err() == nil {
			s.logger.Warn("submitting a group", "slot", key.Slot, "err", err)
			s.outbox.add(key)
		}
		s.offered(key, false)
		// If ctx ends the pause, it ends the caller as well.
		_ = wait.Sleep(ctx, callPause)
		return err
	}
	s.logger.Debug("group submitted", "slot", key.Slot, "status", reply.Status.String())
	if reply.Status == exchange.Invalid {
		s.refused(key, group.Outcome, reply.Field)
		return nil
	}
	// This learner does not need groups that are closed or stale. They are the first to be dropped when room is needed,
	// like the groups that the learner has in memory.
	s.offered(key, true)
	return nil
}

// reportUnanswered reports to the learner, before a group is submitted, that some of its samples were not answered.
// It does nothing if all were answered.
func (s *submitter) reportUnanswered(ctx context.Context, key rl.Key) error {
	group := s.active.get(key)
	if group == nil || !group.unanswered.Load() {
		return nil
	}
	return s.learner.Release(ctx, []rl.Key{key}, exchange.SamplesUnanswered)
}

// store stores a finished group and queues it. An invalid group is stored as a tombstone.
func (s *submitter) store(group rl.Group) {
	level := slog.LevelInfo
	if group.Outcome == rl.Usable {
		level = slog.LevelDebug
	}
	s.logger.Log(context.Background(), level, "group finished", "slot", group.Key.Slot, "kind", group.Key.Kind.String(),
		"environment", group.Environment, "outcome", group.Outcome.String(), "reason", group.Reason,
		"promptTokens", group.PromptTokens, "sampledTokens", group.SampledTokens)
	if err := s.groups.Add(group); err != nil {
		s.logger.Error("a group is invalid", "slot", group.Key.Slot, "err", err)
		s.storeTombstone(group, rl.InvalidTokens, err.Error())
	}
	s.outbox.add(group.Key)
}

// refused makes a tombstone of a group that the learner does not accept, and queues the tombstone.
func (s *submitter) refused(key rl.Key, outcome rl.Outcome, field string) {
	s.logger.Error("the learner refuses a group", "slot", key.Slot, "outcome", outcome.String(), "field", field)
	if outcome == rl.InvalidTokens {
		s.groups.Offered(key, true)
		return
	}
	s.reject(key, rl.InvalidTokens, "the learner refuses "+field)
	s.outbox.add(key)
}

// reject replaces a stored group by a tombstone.
func (s *submitter) reject(key rl.Key, outcome rl.Outcome, reason string) {
	group, ok, err := s.groups.Group(key)
	if err != nil || !ok {
		s.logger.Error("reading a group that was rejected", "slot", key.Slot, "err", err)
		return
	}
	s.storeTombstone(group, outcome, reason)
}

func (s *submitter) storeTombstone(group rl.Group, outcome rl.Outcome, reason string) {
	if err := s.groups.Add(group.Tombstone(outcome, reason)); err != nil {
		s.logger.Error("storing a tombstone", "slot", group.Key.Slot, "err", err)
	}
}

// offered notes that a group was offered to a learner, and whether the learner has it in memory now.
func (s *submitter) offered(key rl.Key, taken bool) {
	if dropped := s.groups.Offered(key, taken); len(dropped) > 0 {
		s.logger.Warn("groups were dropped for lack of room", "count", len(dropped), "highest", dropped[0].Slot)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// start begins to play a lease, unless the group is stored or in progress already. hellos is the number of Hellos
// that were said before the worker asked for the lease. A lease that was on its way during a Hello is released: the
// learner would not know the cost of the group before the next renewal.
func (w *Worker) start(ctx context.Context, lease exchange.Lease, hellos int) {
	if w.isStored(lease.Key) {
		w.submitter.outbox.add(lease.Key)
		return
	}
	spec, player, err := w.prepare(ctx, lease)
	if err != nil {
		w.config.Logger.Error("releasing a lease that cannot be played", "slot", lease.Key.Slot, "environment",
			lease.Environment, "err", err)
		w.players.Go(func() { w.giveUp(ctx, lease.Key, exchange.EnvironmentDown) })
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	group := newActiveGroup(lease, cancel)
	if s := w.config.Spending; s != nil {
		group.account = s.account(lease.Key)
	}
	switch w.active.add(group, hellos) {
	case renewed:
		cancel()
		return
	case crossed:
		cancel()
		w.release([]rl.Key{lease.Key}, exchange.NotPlayed)
		return
	}
	own := &policy{worker: w, group: group}
	player.Policy, player.Prompts = own, own
	player.Replies = w.config.Groups
	if lease.Key.Kind == rl.Train {
		addScorers(player, own, w.play.Load().play, spec.Settings.Teacher)
	}
	player.Gate = groupGate{gate: &w.episodes, rank: rank(lease.Key), changes: &w.changes}
	if group := w.health.Group(lease.Environment, player.Environment, lease.Key.Slot,
		lease.Key.Kind == rl.Train); group != nil {
		player.Health = group
	}
	player.Progress = &group.progress
	if lease.Alone {
		player.Turn = group.permits.await
	}
	player.Format = &groupFormat{formats: &w.formats, environment: lease.Environment + " " + spec.Settings.Digest,
		trained: isTrained(lease)}
	w.players.Go(func() {
		defer cancel()
		w.playGroup(w.config.Spending.of(withRank(ctx, rank(lease.Key)), group), group, player, spec)
	})
}

// addScorers adds the reference of the run and the teacher of the environment, if there are any.
func addScorers(player *episode.Player, own *policy, play contract.Play, teacher *algorithm.Teacher) {
	if play.Reference != nil {
		player.Reference = newScorer(own, rl.UseReference, *play.Reference)
	}
	if teacher != nil {
		player.Teacher = newScorer(own, rl.UseTeacher, teacher.Reference())
	}
}

// prepare returns the spec of a lease's group, and a player for it.
func (w *Worker) prepare(ctx context.Context, lease exchange.Lease) (episode.Spec, *episode.Player, error) {
	play := w.play.Load()
	if play == nil {
		return episode.Spec{}, nil, errors.New("no learner has reported what is played")
	}
	return play.prepare(ctx, lease)
}

// playGroup plays a group to its end and stores it. A group that is revoked leaves nothing behind; one that
// cannot be continued is released.
func (w *Worker) playGroup(ctx context.Context, active *activeGroup, player *episode.Player, spec episode.Spec) {
	group, err := player.Play(ctx, spec)
	switch {
	case err == nil:
		// The group stays in progress until it is submitted: from a renewal that does not list the group, the learner would
		// conclude that the lease was lost.
		w.submitter.store(group)
	case ctx.Err() != nil:
		// The caller that ended the context removes the group.
	default:
		w.config.Logger.Warn("releasing a group that cannot be continued", "slot", active.key.Slot, "kind",
			active.key.Kind.String(), "err", err)
		if w.giveUp(ctx, active.key, exchange.PolicyMissing) {
			w.active.removeGroup(active)
		}
	}
}

// giveUp releases a lease that cannot be played, after a pause. It returns false if ctx ends first.
func (w *Worker) giveUp(ctx context.Context, key rl.Key, reason string) bool {
	if wait.Sleep(ctx, failurePause) != nil {
		return false
	}
	w.release([]rl.Key{key}, reason)
	return true
}

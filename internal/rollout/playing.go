// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
)

// Reasons for giving a lease back.
const (
	reasonDrain           = "drain"
	reasonPolicyGone      = "policy_gone"
	reasonEnvironmentDown = "environment_down"
)

// playing is a group under way.
type playing struct {
	key      rl.Key
	cancel   context.CancelFunc
	progress episode.Progress

	mu    sync.Mutex
	lease exchange.Lease
}

func (p *playing) currentLease() exchange.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease
}

// renewLease takes a lease of the same group from a new learner: its sampler may have another name.
func (p *playing) renewLease(lease exchange.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = lease
}

// start begins to play a lease, unless the group is held or under way already.
func (w *Worker) start(ctx context.Context, lease exchange.Lease) {
	if w.isHeld(lease.Key) {
		w.outbox.add(lease.Key)
		return
	}
	game, part, err := w.prepare(lease)
	if err != nil {
		w.config.Logger.Error("giving a lease back", "slot", lease.Key.Slot, "environment", lease.Environment, "error", err)
		w.players.Go(func() { w.giveUp(ctx, lease.Key, reasonEnvironmentDown) })
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.playing[lease.Key]; ok {
		p.renewLease(lease)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &playing{key: lease.Key, cancel: cancel, lease: lease}
	part.Policy = &policy{worker: w, playing: p}
	part.Gate = door{gate: &w.episodes, rank: rank(lease.Key), left: &w.changed}
	part.Progress = &p.progress
	w.playing[lease.Key] = p
	w.players.Go(func() {
		defer cancel()
		w.play(ctx, p, part, game)
	})
}

// prepare finds what a lease is played with.
func (w *Worker) prepare(lease exchange.Lease) (episode.Game, *episode.Player, error) {
	repertoire := w.repertoire.Load()
	if repertoire == nil {
		return episode.Game{}, nil, errors.New("no learner has said what is played")
	}
	return repertoire.prepare(lease)
}

// play plays a group to its end and holds it. A group that is revoked leaves nothing behind; one that
// cannot go on is given back.
func (w *Worker) play(ctx context.Context, p *playing, part *episode.Player, game episode.Game) {
	group, err := part.Play(ctx, game)
	switch {
	case err == nil:
		// It counts as under way until it was offered: were it in no renewal before, the learner would take
		// the lease for lost.
		w.hold(group)
	case ctx.Err() != nil:
		// Who ended it knows of it, and takes it off the list.
	default:
		w.config.Logger.Warn("giving a group back", "slot", p.key.Slot, "kind", p.key.Kind.String(), "error", err)
		if w.giveUp(ctx, p.key, reasonPolicyGone) {
			w.forget(p.key, p)
		}
	}
}

// forget notes that a group is not under way any more. With p it must be that play of it.
func (w *Worker) forget(key rl.Key, p *playing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p == nil || w.playing[key] == p {
		delete(w.playing, key)
	}
	w.changed.raise()
}

// giveUp gives a lease back that cannot be played, after a pause; false when ctx ended first.
func (w *Worker) giveUp(ctx context.Context, key rl.Key, reason string) bool {
	if pause(ctx, failurePause) != nil {
		return false
	}
	w.release([]rl.Key{key}, reason)
	return true
}

// hold keeps a finished group and has it submitted. One that is not valid is kept as a tombstone.
func (w *Worker) hold(group rl.Group) {
	level := slog.LevelInfo
	if group.Outcome == rl.Usable {
		level = slog.LevelDebug
	}
	w.config.Logger.Log(context.Background(), level, "group finished", "slot", group.Key.Slot, "kind", group.Key.Kind.String(),
		"environment", group.Environment, "outcome", group.Outcome.String(), "reason", group.Reason,
		"promptTokens", group.PromptTokens, "sampledTokens", group.SampledTokens)
	err := w.held.Add(group)
	if err == nil {
		w.outbox.add(group.Key)
		return
	}
	w.config.Logger.Error("a group is not valid", "slot", group.Key.Slot, "error", err)
	w.condemn(group, rl.InvalidTokens, err.Error())
	w.outbox.add(group.Key)
}

// condemn keeps a group as a tombstone from now on.
func (w *Worker) condemn(group rl.Group, outcome rl.Outcome, reason string) {
	if err := w.held.Add(group.Tombstone(outcome, reason)); err != nil {
		w.config.Logger.Error("holding a tombstone", "slot", group.Key.Slot, "error", err)
	}
}

// stop gives up groups that are under way, and says which there were.
func (w *Worker) stop(keys []rl.Key) (stopped []rl.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if p, ok := w.playing[key]; ok {
			p.cancel()
			delete(w.playing, key)
			stopped = append(stopped, key)
		}
	}
	w.changed.raise()
	return stopped
}

// keep goes on with a group under way, under the lease of a learner that was greeted.
func (w *Worker) keep(lease exchange.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.playing[lease.Key]; ok {
		p.renewLease(lease)
	}
}

func (w *Worker) isPlaying(key rl.Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.playing[key]
	return ok
}

// playingKeys are the groups under way, those that are needed first before others.
func (w *Worker) playingKeys() []rl.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.playing), func(a, b rl.Key) int { return cmp.Compare(rank(a), rank(b)) })
}

// progress of the groups under way.
func (w *Worker) progress() []exchange.Progress {
	var out []exchange.Progress
	for _, key := range w.playingKeys() {
		w.mu.Lock()
		p, ok := w.playing[key]
		w.mu.Unlock()
		if ok {
			out = append(out, exchange.Progress{
				Key: key, MembersDone: int(p.progress.MembersDone.Load()), SampledTokens: p.progress.SampledTokens.Load(),
			})
		}
	}
	return out
}

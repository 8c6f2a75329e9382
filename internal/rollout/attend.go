// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// attendant is the worker as the exchange sees it. Its methods are called one at a time.
type attendant struct {
	worker *Worker
	// fail ends the worker for good.
	fail func(error)
	// told is what the last Hello said to be held and to be playing.
	toldHeld, toldPlaying map[rl.Key]bool
	attempt               int32
}

// Hello implements exchange.Attendant.
func (a *attendant) Hello() exchange.HelloRequest {
	w := a.worker
	// Playing before held: a group that ends in between is in both, never in neither.
	playing := w.playingKeys()
	held := w.held.List()
	a.toldHeld, a.toldPlaying = map[rl.Key]bool{}, map[rl.Key]bool{}
	for _, h := range held {
		a.toldHeld[h.Key] = true
	}
	for _, key := range playing {
		a.toldPlaying[key] = true
	}
	return exchange.HelloRequest{Stored: held, Playing: playing}
}

// HandleHello implements exchange.Attendant.
func (a *attendant) HandleHello(reply exchange.HelloReply) {
	w := a.worker
	if attempt := w.config.Learner.Attempt(); attempt != a.attempt {
		w.config.Logger.Info("greeted by a learner", "attempt", attempt, "held", len(a.toldHeld),
			"wanted", len(reply.Wanted), "playing", len(a.toldPlaying), "kept", len(reply.Keep))
		a.attempt = attempt
		w.held.Untake()
	}
	if err := w.learn(reply.Play); err != nil {
		a.fail(err)
		return
	}
	w.sessions.use(reply.Session)
	for _, lease := range reply.Keep {
		delete(a.toldPlaying, lease.Key)
		w.keep(lease)
	}
	w.stop(slices.Collect(maps.Keys(a.toldPlaying)))
	// What was told and is not wanted need not be sent; what ended since the Hello still must be.
	w.outbox.remove(func(key rl.Key) bool { return a.toldHeld[key] })
	a.want(reply.Wanted)
	w.held.Cover(reply.CoveredIndex, nil)
	w.ready.Store(true)
}

// Renewal implements exchange.Attendant.
func (a *attendant) Renewal() exchange.Renewal {
	throttled, queue := a.worker.config.Pressure.take()
	return exchange.Renewal{Progress: a.worker.progress(), Throttled: throttled, QueueState: queue}
}

// HandleDirective implements exchange.Attendant.
func (a *attendant) HandleDirective(directive exchange.Directive) {
	w := a.worker
	// A group that was accepted is revoked, too, if it was listed in the last renewal: that stops nothing.
	if stopped := slices.DeleteFunc(w.stop(directive.Revoked), w.isHeld); len(stopped) > 0 {
		w.config.Logger.Info("leases were revoked", "count", len(stopped))
	}
	w.setCredits(directive.Credits)
	w.sessions.use(directive.Session)
	w.held.Cover(directive.CoveredIndex, directive.CoveredEvaluations)
	for _, c := range directive.Rejected {
		a.condemn(c)
	}
	a.want(directive.Wanted)
}

// want queues what is held and gives back what is neither held nor under way: it was given up, or was lost
// with a damaged file.
func (a *attendant) want(keys []rl.Key) {
	var missing []rl.Key
	for _, key := range keys {
		if a.worker.isHeld(key) {
			a.worker.outbox.add(key)
			continue
		}
		if !a.worker.isPlaying(key) {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		a.worker.config.Logger.Warn("groups that the learner wants are not held any more", "count", len(missing), "lowest", missing[0].Slot)
		a.worker.release(missing, reasonDrain)
	}
}

// condemn makes a tombstone of a group that the learner found to be untrainable.
func (a *attendant) condemn(c exchange.RejectedGroup) {
	w := a.worker
	held, ok := w.held.Lookup(c.Key)
	if !ok || held.Outcome == c.Outcome {
		return
	}
	w.replace(c.Key, c.Outcome, c.Reason)
	w.held.Offered(c.Key, true)
}

var _ exchange.Worker = (*attendant)(nil)

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

var errClosed = errors.New("the learner is going")

// Hello takes in what a worker has. It waits until the board is open: before, nobody can tell what is of
// use, and the worker plays on.
func (b *Table) Hello(ctx context.Context, name string, request exchange.HelloRequest) (exchange.HelloReply, error) {
	select {
	case <-b.opened:
	case <-b.closed:
		return exchange.HelloReply{}, errClosed
	case <-ctx.Done():
		return exchange.HelloReply{}, fmt.Errorf("waiting for the model: %w", ctx.Err())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.meet(name)
	w.parted = time.Time{}
	if b.expected[name] {
		delete(b.expected, name)
		if len(b.expected) == 0 {
			b.leaseAfter = w.seen
		}
	}
	clear(w.held)
	for _, held := range request.Stored {
		w.held[held.Key] = held
	}
	clear(w.playing)
	for _, key := range request.Playing {
		w.playing[key] = true
	}
	b.adopt()
	reply := exchange.HelloReply{
		Wanted: b.wanted(w), CoveredIndex: b.covered, Play: b.config.Play, Session: b.session,
	}
	for _, key := range request.Playing {
		if e := b.entries[key]; e != nil && e.group == nil && e.player == name {
			reply.Keep = append(reply.Keep, e.lease)
		}
	}
	b.config.Logger.Info("worker said hello", "worker", name, "held", len(request.Stored),
		"playing", len(request.Playing), "wanted", len(reply.Wanted), "kept", len(reply.Keep))
	b.wake()
	return reply, nil
}

// Acquire waits for leases.
func (b *Table) Acquire(ctx context.Context, name string, free int) ([]exchange.Lease, error) {
	for {
		leases, changed := b.grant(name, free)
		if len(leases) > 0 {
			return leases, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// grant leases what fits, in order of demand, and otherwise tells what to wait for.
func (b *Table) grant(name string, free int) ([]exchange.Lease, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.config.Now()
	w := b.meet(name)
	if !w.parted.IsZero() || b.leaseAfter.IsZero() || now.Before(b.leaseAfter) || free <= 0 {
		return nil, b.changed
	}
	all, own := b.leased(name)
	room := min(free, b.credits.total()-all, b.credits.total()/max(1, b.alive(now))-own)
	var leases []exchange.Lease
	b.eachDemanded(func(key rl.Key, e *entry) bool {
		if e.group != nil || e.player != "" || b.isHeld(key, now) {
			return true
		}
		// Who plays nothing gets one group, however large: smaller room never comes.
		if e.lease.GroupSize > room && own+len(leases) > 0 {
			return false
		}
		if all >= b.credits.total() {
			return false
		}
		e.player, e.granted = name, now
		w.playing[key] = true
		room -= e.lease.GroupSize
		all += e.lease.GroupSize
		leases = append(leases, e.lease)
		return true
	})
	return leases, b.changed
}

// leased counts the episodes under lease: all, and the worker's own.
func (b *Table) leased(name string) (all, own int) {
	for _, e := range b.entries {
		if e.group != nil || e.player == "" {
			continue
		}
		all += e.lease.GroupSize
		if e.player == name {
			own += e.lease.GroupSize
		}
	}
	return all, own
}

// Renew takes what the worker says and tells it how things are.
func (b *Table) Renew(name string, renewal exchange.Renewal) exchange.Directive {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.config.Now()
	w := b.meet(name)
	w.parted = time.Time{}
	clear(w.playing)
	for _, progress := range renewal.Progress {
		w.playing[progress.Key] = true
	}
	b.slow(renewal, now)
	b.adopt()
	b.lost(name, w, now)
	return b.directive(name, w)
}

// slow takes note of what the worker met at the endpoint. A paused queue is the endpoint's to work off;
// asking less does not help.
func (b *Table) slow(renewal exchange.Renewal, now time.Time) {
	if strings.HasPrefix(renewal.QueueState, "paused") {
		b.trouble, b.troubled = renewal.QueueState, now
	}
	if renewal.Throttled > 0 {
		b.trouble, b.troubled = "throttled", now
		b.credits.slow(now)
	}
}

// Directive tells how things are.
func (b *Table) Directive(name string) exchange.Directive {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.workers[name]
	if w == nil {
		w = b.meet(name)
	}
	return b.directive(name, w)
}

// Submit takes a group in, once.
func (b *Table) Submit(name string, group rl.Group, digest rl.Digest) exchange.SubmitReply {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.meet(name)
	delete(w.playing, group.Key)
	delete(w.asked, group.Key)
	reply := b.accept(name, group, digest)
	if reply.Status != exchange.Invalid {
		w.held[group.Key] = exchange.StoredGroup{Key: group.Key, Outcome: group.Outcome}
	}
	b.wake()
	return reply
}

func (b *Table) accept(name string, group rl.Group, digest rl.Digest) exchange.SubmitReply {
	e := b.entries[group.Key]
	switch {
	case e == nil && group.Key.Kind == rl.Train && group.Key.Slot >= b.covered && !b.isCurrent(group.Key.Lineage):
		b.counters.Stale++
		return exchange.SubmitReply{Status: exchange.Stale}
	case e == nil:
		b.counters.Closed++
		return exchange.SubmitReply{Status: exchange.Closed}
	case e.group != nil:
		b.counters.Duplicate++
		if e.again && e.from != name {
			b.counters.BoughtTwiceTokens += group.SampledTokens
		}
		return exchange.SubmitReply{Status: exchange.Duplicate}
	}
	if field := mismatch(e.lease, group); field != "" {
		b.counters.Invalid++
		e.player = ""
		b.config.Logger.Warn("group is not as leased", "worker", name, "slot", group.Key.Slot, "field", field)
		return exchange.SubmitReply{Status: exchange.Invalid, Field: field}
	}
	b.counters.Accepted++
	if group.Key.Kind == rl.Evaluate {
		group = withoutSegments(group)
	}
	b.counters.PromptTokens += group.PromptTokens
	b.counters.SampledTokens += group.SampledTokens
	e.group, e.digest, e.from = &group, digest, name
	return exchange.SubmitReply{Status: exchange.Accepted}
}

// withoutSegments drops what only training needs.
func withoutSegments(group rl.Group) rl.Group {
	group.Members = slices.Clone(group.Members)
	for i := range group.Members {
		group.Members[i].Segments = nil
	}
	return group
}

// isCurrent says whether a policy of that lineage is being sampled.
func (b *Table) isCurrent(lineage rl.Lineage) bool {
	for key := range b.entries {
		if key.Kind == rl.Train && key.Lineage == lineage {
			return true
		}
	}
	return false
}

// mismatch names the field of a group that is not as the lease says.
func mismatch(lease exchange.Lease, group rl.Group) string {
	if group.Environment != lease.Environment {
		return "environment"
	}
	if len(group.Members) > lease.GroupSize {
		return "members"
	}
	for i, member := range group.Members {
		if member.Index >= lease.GroupSize {
			return fmt.Sprintf("members[%d].index", i)
		}
	}
	if group.Outcome == rl.Usable && len(group.UsableMembers()) < lease.MinMembers {
		return "outcome"
	}
	return ""
}

// Release gives leases back.
func (b *Table) Release(name string, keys []rl.Key, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.meet(name)
	for _, key := range keys {
		delete(w.playing, key)
		if e := b.entries[key]; e != nil && e.player == name && e.group == nil {
			e.player = ""
			if reason == "policy_gone" {
				b.gone[Policy{Lineage: key.Lineage, Evaluation: key.Evaluation}] = true
			}
		}
	}
	b.config.Logger.Info("worker gave leases back", "worker", name, "leases", len(keys), "reason", reason)
	b.wake()
}

func compareKeys(a, b rl.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Evaluation, b.Evaluation),
		cmp.Compare(a.Lineage.String(), b.Lineage.String()))
}

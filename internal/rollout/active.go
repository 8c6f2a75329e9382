// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// activeGroup is a group in progress.
type activeGroup struct {
	key      rl.Key
	cancel   context.CancelFunc
	progress episode.Progress
	// account counts the tokens that the group has used.
	account *client.Account
	// unanswered is set once a sample was posted without an answer: the endpoint may still draw the sample.
	unanswered atomic.Bool
	permits    permits
	// lease is the latest lease of the group. The lease of a new learner may name another sampler.
	lease atomic.Pointer[exchange.Lease]
}

func newActiveGroup(lease exchange.Lease, cancel context.CancelFunc) *activeGroup {
	group := &activeGroup{key: lease.Key, cancel: cancel}
	group.take(lease)
	return group
}

// take takes over a lease of the group.
func (g *activeGroup) take(lease exchange.Lease) {
	g.lease.Store(&lease)
	g.permits.of(lease)
}

// note notes whether a sample was posted without an answer.
func (g *activeGroup) note(unanswered bool) {
	if unanswered {
		g.unanswered.Store(true)
	}
}

// activeGroups are the groups in progress.
type activeGroups struct {
	// changes is notified when there may be room for more.
	changes *wait.Signal

	mu    sync.Mutex
	byKey map[rl.Key]*activeGroup
	// hellos counts how often the groups were listed for a Hello.
	hellos int
}

func newActiveGroups(changes *wait.Signal) *activeGroups {
	return &activeGroups{changes: changes, byKey: map[rl.Key]*activeGroup{}}
}

// addition is the result of adding a group.
type addition int

const (
	added addition = iota
	// renewed means that the group was in progress already, and its lease was renewed.
	renewed
	// crossed means that the group was not added: its lease was on its way while the worker said Hello, perhaps to
	// another learner, which does not know that the group is played.
	crossed
)

// add adds a group. hellos is the number of Hellos that were said before the worker asked for the lease.
func (a *activeGroups) add(group *activeGroup, hellos int) addition {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.byKey[group.key]; ok {
		known.take(*group.lease.Load())
		return renewed
	}
	if hellos != a.hellos {
		return crossed
	}
	a.byKey[group.key] = group
	return added
}

// hello lists the groups for a Hello, as keys does.
func (a *activeGroups) hello() []rl.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hellos++
	return a.sorted()
}

// saidHello counts the Hellos.
func (a *activeGroups) saidHello() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hellos
}

// renew replaces the lease of a group, if the group is in progress.
func (a *activeGroups) renew(lease exchange.Lease) {
	if group := a.get(lease.Key); group != nil {
		group.take(lease)
	}
}

// get returns the group, or nil when it is not in progress.
func (a *activeGroups) get(key rl.Key) *activeGroup {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byKey[key]
}

// remove notes that a group is not in progress any more.
func (a *activeGroups) remove(key rl.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey, key)
	a.changes.Notify()
}

// removeGroup removes a group, unless its key has another group by now.
func (a *activeGroups) removeGroup(group *activeGroup) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[group.key] == group {
		delete(a.byKey, group.key)
	}
	a.changes.Notify()
}

// stop cancels and removes groups, and lists those that were in progress.
func (a *activeGroups) stop(keys []rl.Key) (stopped []rl.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		if group, ok := a.byKey[key]; ok {
			group.cancel()
			delete(a.byKey, key)
			stopped = append(stopped, key)
		}
	}
	a.changes.Notify()
	return stopped
}

// keys lists the keys of the groups, the most urgent first.
func (a *activeGroups) keys() []rl.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sorted()
}

// sorted is keys for callers that hold the lock.
func (a *activeGroups) sorted() []rl.Key {
	return slices.SortedFunc(maps.Keys(a.byKey), func(a, b rl.Key) int { return cmp.Compare(rank(a), rank(b)) })
}

// list lists the groups, the most urgent first.
func (a *activeGroups) list() (groups []*activeGroup) {
	for _, key := range a.keys() {
		if group := a.get(key); group != nil {
			groups = append(groups, group)
		}
	}
	return groups
}

// pendingMembers counts the members that have no outcome yet.
func (a *activeGroups) pendingMembers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	members := 0
	for _, group := range a.byKey {
		members += group.lease.Load().GroupSize - int(group.progress.MembersDone.Load())
	}
	return members
}

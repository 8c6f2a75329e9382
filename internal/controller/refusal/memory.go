// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RetryInterval is the time between two tries to create an object that was refused.
const RetryInterval = 45 * time.Second

// Try is a create that was refused.
type Try struct {
	Refusal
	// Name of the object that was to be created.
	Name string
	// Generation of its owner.
	Generation int64
	At         time.Time
}

// Wait is how long to wait before the next try, and whether there is to be one: not for the same generation of the owner
// if the refusal is final. The zero Try waits for nothing.
func (t Try) Wait(generation int64, now time.Time) (time.Duration, bool) {
	switch {
	case t.Reason == "":
		return 0, true
	case t.Generation != generation:
		return 0, true
	case t.Final():
		return 0, false
	default:
		return max(0, t.At.Add(RetryInterval).Sub(now)), true
	}
}

// Memory keeps the newest refusal of each role of an owner's objects. Losing it costs one more try.
type Memory struct {
	mu     sync.Mutex
	owners map[types.NamespacedName]tries
}

// tries are those of one owner, by role.
type tries struct {
	uid    types.UID
	byRole map[string]Try
}

// NewMemory returns a Memory without refusals.
func NewMemory() *Memory { return &Memory{owners: map[types.NamespacedName]tries{}} }

// Record keeps a refusal, or forgets the former one where err refuses nothing, and reports whether it refuses.
func (m *Memory) Record(owner client.Object, role, name string, err error, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	refused, is := Of(err)
	key := client.ObjectKeyFromObject(owner)
	known := m.owners[key]
	if known.uid != owner.GetUID() {
		known = tries{uid: owner.GetUID(), byRole: map[string]Try{}}
	}
	delete(known.byRole, role)
	if is {
		known.byRole[role] = Try{Refusal: refused, Name: name, Generation: owner.GetGeneration(), At: now}
	}
	m.owners[key] = known
	return is
}

// Latest is the newest refusal of a role; the zero Try without one.
func (m *Memory) Latest(owner client.Object, role string) Try {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.owners[client.ObjectKeyFromObject(owner)]
	if known.uid != owner.GetUID() {
		return Try{}
	}
	return known.byRole[role]
}

// Forget drops what is known of an owner.
func (m *Memory) Forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, owner)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// RetryInterval is the time between two tries to create an object that was refused.
const RetryInterval = 45 * time.Second

// Try is a create that was refused.
type Try struct {
	problem.Problem
	// Name is the name of the object that was to be created.
	Name string
	// Generation is the generation of its owner.
	Generation int64
	At         time.Time
}

// Wait returns the time before the next try, and whether there is one: there is none for the same generation of the
// owner if the refusal is final. The zero Try waits for nothing.
func (t Try) Wait(generation int64, now time.Time) (time.Duration, bool) {
	switch {
	case t.Code == "":
		return 0, true
	case t.Generation != generation:
		return 0, true
	case t.Code == problem.SpecRefused:
		return 0, false
	default:
		return max(0, t.At.Add(RetryInterval).Sub(now)), true
	}
}

// Memory keeps the newest refusal of each role of an owner's objects. If it is lost, there may be one more try. The
// zero value is empty and ready for use.
type Memory struct{ byRole objectmap.Map[map[string]Try] }

// Record keeps err if it is a refusal, or else forgets the former refusal, and reports whether err is a refusal. Only
// one goroutine at a time may record for an owner.
func (m *Memory) Record(owner client.Object, role, name string, err error, now time.Time) bool {
	refused, is := Of(err)
	tries := map[string]Try{}
	maps.Copy(tries, m.byRole.Get(owner))
	delete(tries, role)
	if is {
		tries[role] = Try{Problem: refused, Name: name, Generation: owner.GetGeneration(), At: now}
	}
	m.byRole.Set(owner, tries)
	return is
}

// Latest returns the newest refusal of a role; the zero Try if there is none.
func (m *Memory) Latest(owner client.Object, role string) Try { return m.byRole.Get(owner)[role] }

// Forget drops the state of an owner.
func (m *Memory) Forget(owner types.NamespacedName) { m.byRole.Forget(owner) }

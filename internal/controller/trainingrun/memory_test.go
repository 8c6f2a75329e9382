// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMemory(t *testing.T) {
	m := &memory{}
	before, after := newRun(), newRun()
	before.ResourceVersion, after.ResourceVersion = "1", "2"
	m.written(before, after, now)
	if !m.stale(before) || m.stale(after) || !m.wrote(after).Equal(now) {
		t.Errorf("stale before and after the write: %v and %v, want true and false; written at %v, want %v", m.stale(before),
			m.stale(after), m.wrote(after), now)
	}
	another := newRun()
	another.UID, another.ResourceVersion = "another", "1"
	if m.stale(another) {
		t.Error("memory takes a run for an earlier one of its name")
	}
	m.Forget(client.ObjectKeyFromObject(after))
	if m.stale(before) {
		t.Error("memory forgets nothing")
	}
}

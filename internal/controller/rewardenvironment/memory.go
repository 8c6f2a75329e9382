// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
)

// memory is what a Reconciler knows of environments beyond what the cluster has of them. If it is lost, a request may be made once more,
// and only the clocks of nodes say when a probe ended. An environment that replaces one of its name begins without any.
type memory struct {
	refusals *refusal.Memory

	mu     sync.Mutex
	probes map[types.NamespacedName]probes
}

// probes are those of one environment.
type probes struct {
	// uid is that of the environment.
	uid types.UID
	// started is when the newest was started.
	started time.Time
	// deleted are those that were deleted last. The cache may have them for a while yet.
	deleted []types.UID
}

func newMemory() *memory {
	return &memory{refusals: refusal.NewMemory(), probes: map[types.NamespacedName]probes{}}
}

// of returns what is known of the probes of an environment.
func (m *memory) of(env client.Object) probes {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.probes[client.ObjectKeyFromObject(env)]
	if known.uid != env.GetUID() {
		return probes{uid: env.GetUID()}
	}
	return known
}

// keep replaces what is known of the probes of an environment. Only the reconciliation of the environment does so, of which
// there is one at a time.
func (m *memory) keep(env client.Object, known probes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probes[client.ObjectKeyFromObject(env)] = known
}

// forget drops all that is known of an environment that was deleted.
func (m *memory) forget(env types.NamespacedName) {
	m.refusals.Forget(env)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.probes, env)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// memory is what the manager knows without the API server. Losing it costs a write or a conflict more,
// never a decision.
type memory struct {
	mu   sync.Mutex
	runs map[types.NamespacedName]remembered
}

type remembered struct {
	uid types.UID
	// from and to are the resource versions before and after the newest status write.
	from, to string
	// wrote is when that was.
	wrote time.Time
}

func newMemory() *memory { return &memory{runs: map[types.NamespacedName]remembered{}} }

func (m *memory) written(before, after *v1alpha1.TrainingRun, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[client.ObjectKeyFromObject(before)] = remembered{before.UID, before.ResourceVersion, after.ResourceVersion, now}
}

// stale says that a run is as it was before our own newest write.
func (m *memory) stale(run *v1alpha1.TrainingRun) bool {
	known := m.of(run)
	return known.from == run.ResourceVersion && known.to != known.from
}

// wrote is when the status was last written; the zero time when this manager has not.
func (m *memory) wrote(run *v1alpha1.TrainingRun) time.Time { return m.of(run).wrote }

func (m *memory) forget(run types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, run)
}

// of gives what is known of a run; nothing of an earlier one of its name.
func (m *memory) of(run *v1alpha1.TrainingRun) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.runs[client.ObjectKeyFromObject(run)]
	if known.uid != run.UID {
		return remembered{}
	}
	return known
}

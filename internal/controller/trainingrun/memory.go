// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
)

// memory has the newest status write of each run. If it is lost, there may be another write or conflict, but no other
// decision.
type memory struct{ objectmap.Map[write] }

// write is a write of a status.
type write struct {
	// from and to are the resource versions before and after it.
	from, to string
	at       time.Time
}

func (m *memory) written(before, after *v1alpha1.TrainingRun, now time.Time) {
	m.Set(before, write{before.ResourceVersion, after.ResourceVersion, now})
}

// stale reports whether a run is as it was before our own newest write.
func (m *memory) stale(run *v1alpha1.TrainingRun) bool {
	newest := m.Get(run)
	return newest.from == run.ResourceVersion && newest.to != newest.from
}

// wrote returns the time at which this manager last wrote the status; the zero time if it has not.
func (m *memory) wrote(run *v1alpha1.TrainingRun) time.Time { return m.Get(run).at }

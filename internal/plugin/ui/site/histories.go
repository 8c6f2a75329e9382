// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Bounds of the histories that are kept.
const (
	// fresh is the time for which a history is shown before it is read again, and settled the time for a run that is over.
	fresh, settled = 10 * time.Second, 10 * time.Minute
	mostHistories  = 512
)

// histories keeps the histories of runs for a while, so that open pages read the ConfigMaps of a run once.
type histories struct {
	connection *cli.Connection
	now        func() time.Time

	mu    sync.Mutex
	known map[types.UID]*knownHistory
}

// knownHistory is the history of a run. mu is held while it is read, so that pages that need it at the same time wait
// for one read.
type knownHistory struct {
	mu      sync.Mutex
	history *history.History
	at      time.Time
}

func newHistories(c Config) *histories {
	return &histories{connection: c.Connection, now: c.Now, known: map[types.UID]*knownHistory{}}
}

// of returns the history of a run.
func (h *histories) of(ctx context.Context, run *v1alpha1.TrainingRun) (*history.History, error) {
	known := h.entry(run.UID)
	known.mu.Lock()
	defer known.mu.Unlock()
	lasts := fresh
	if status.RunFinished(run) {
		lasts = settled
	}
	if known.history != nil && h.now().Sub(known.at) < lasts {
		return known.history, nil
	}
	_, read, err := historymap.Read(ctx, h.connection, run)
	if err != nil {
		return &history.History{}, err
	}
	known.history, known.at = read, h.now()
	return read, nil
}

func (h *histories) entry(uid types.UID) *knownHistory {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.known[uid]; known != nil {
		return known
	}
	for other := range h.known {
		if len(h.known) < mostHistories {
			break
		}
		delete(h.known, other)
	}
	h.known[uid] = &knownHistory{}
	return h.known[uid]
}

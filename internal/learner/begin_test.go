// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"slices"
	"testing"
)

// workerStore is both a table that changes all the time and a store that fails at first.
type workerStore struct {
	failures int
	written  [][]string
	end      context.CancelFunc
}

func (*workerStore) Expected() []string { return []string{"w0", "w1"} }

func (*workerStore) Changed() <-chan struct{} {
	changed := make(chan struct{})
	close(changed)
	return changed
}

func (s *workerStore) SetWorkers(names []string) bool {
	s.written = append(s.written, names)
	if s.failures--; s.failures >= 0 {
		return false
	}
	s.end()
	return true
}

func TestRecordWorkersPausesWhileTheStoreFails(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	store := &workerStore{failures: 3, end: end}
	var pauses []int
	recordWorkers(ctx, store, store, func(_ context.Context, failures int) error {
		pauses = append(pauses, failures)
		return nil
	})
	if want := []int{1, 2, 3}; !slices.Equal(pauses, want) {
		t.Errorf("paused after the failures %v, want %v", pauses, want)
	}
	if len(store.written) != 4 {
		t.Errorf("workers were written %d times, want 4: until the store answered", len(store.written))
	}
}

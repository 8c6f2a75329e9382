// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// holders knows which workers may still sample the model that is trained. At an endpoint whose samplers are not
// snapshots, a sample of an older version can put that version's weights into the model. A worker that is lost, has
// stopped a group, or has given up a sample may have requested a sample that the endpoint draws at any later time. A
// lease has ended once its worker has submitted the group and all samples of the group were answered. The owner's
// lock guards it.
type holders struct {
	// open are the leases that have not ended, by worker.
	open map[string]map[rl.Key]bool
	// unclear names a lease that can no longer end; empty if there is none.
	unclear string
}

// ErrSampled reports that a worker may still sample the model.
var ErrSampled = errors.New("a worker may still sample the model")

func newHolders() holders { return holders{open: map[string]map[rl.Key]bool{}} }

// grant notes that a worker was given a lease, which it may have had before.
func (h *holders) grant(worker string, key rl.Key) {
	if h.open[worker][key] {
		h.lose(worker, key)
	}
	h.keep(worker, key)
}

// keep notes that a worker continues to play a group.
func (h *holders) keep(worker string, key rl.Key) {
	if h.open[worker] == nil {
		h.open[worker] = map[rl.Key]bool{}
	}
	h.open[worker][key] = true
}

// end notes that a worker has played a group to its end.
func (h *holders) end(worker string, key rl.Key) {
	delete(h.open[worker], key)
	if len(h.open[worker]) == 0 {
		delete(h.open, worker)
	}
}

// lose notes that a lease of a worker can no longer end.
func (h *holders) lose(worker string, key rl.Key) {
	h.unclear = fmt.Sprintf("worker %s has not ended all samples of slot %d", worker, key.Slot)
}

// hello takes over the groups that a worker plays. Its other leases ended without a report, perhaps with the process
// that had them.
func (h *holders) hello(worker string, request exchange.HelloRequest) {
	playing := map[rl.Key]bool{}
	for _, key := range request.Playing {
		playing[key] = true
	}
	for key := range h.open[worker] {
		if !playing[key] {
			h.lose(worker, key)
		}
	}
}

// check returns ErrSampled, with the worker, unless each lease has ended.
func (h *holders) check() error {
	if h.unclear != "" {
		return fmt.Errorf("%w: %s", ErrSampled, h.unclear)
	}
	for worker, keys := range h.open {
		for key := range keys {
			return fmt.Errorf("%w: worker %s has not reported the end of slot %d", ErrSampled, worker, key.Slot)
		}
	}
	return nil
}

// BeginModel forgets which workers may sample earlier models. It is called before the weights of the next model are
// leased.
func (t *Table) BeginModel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holders = newHolders()
	clear(t.missing) // missing weights were found elsewhere or made again; a worker may also have missed them only once
}

// CheckNotSampled returns ErrSampled, with the worker, unless each lease since BeginModel has ended with all its
// samples.
func (t *Table) CheckNotSampled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holders.check()
}

// CheckNotSampled calls Table.CheckNotSampled.
func (s *BatchSource) CheckNotSampled() error { return s.table.CheckNotSampled() }

// Reject makes a tombstone of a group that the endpoint refuses, here and at its workers.
func (s *BatchSource) Reject(key rl.Key, why string) { s.table.Reject(key, rl.InvalidTokens, why) }

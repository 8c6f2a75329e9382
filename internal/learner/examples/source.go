// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Source provides the batches of a supervised run. It renders the batch after the current one while the current one is
// trained on.
type Source struct {
	table  *leases.Table
	logger *slog.Logger

	changes wait.Signal

	mu     sync.Mutex
	reader *Reader
	at     rl.Position
	begun  bool
	// rendered has the known batches, by their cursors: the batch at the position, and the batch after it.
	rendered map[int64]supervised.Batch
	failed   error
	// refused are the slots that the endpoint refuses.
	refused map[int64]string
	// warned are the reasons for which a row was left out and logged.
	warned map[supervised.Reason]bool
}

// NewSource returns a source without rows. table is the table of the evaluations.
func NewSource(table *leases.Table, logger *slog.Logger) *Source {
	return &Source{table: table, logger: logger, rendered: map[int64]supervised.Batch{}, refused: map[int64]string{},
		warned: map[supervised.Reason]bool{}}
}

// SetReader sets the source's reader, before Reset.
func (s *Source) SetReader(r *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = r
}

// Reset begins at a position with a new model. Which versions can be sampled does not matter.
func (s *Source) Reset(at rl.Position, _ []leases.Version) {
	s.table.BeginModel()
	s.Advance(at)
}

// Announce does nothing: no version is sampled to be trained on.
func (s *Source) Announce(leases.Version) {}

// CheckNotSampled fails if an evaluation may still sample the model's weights.
func (s *Source) CheckNotSampled() error { return s.table.CheckNotSampled() }

// Advance moves to the position after the current batch.
func (s *Source) Advance(to rl.Position) {
	s.mu.Lock()
	s.at, s.begun, s.failed = to, true, nil
	maps.DeleteFunc(s.rendered, func(cursor int64, _ supervised.Batch) bool { return cursor < to.Cursor })
	s.mu.Unlock()
	s.changes.Notify()
}

// Run renders batches until ctx ends.
func (s *Source) Run(ctx context.Context) {
	for {
		reader, cursor, err := s.next(ctx)
		if err != nil {
			return
		}
		batch, err := reader.Batch(ctx, cursor)
		if ctx.Err() != nil {
			return
		}
		s.add(cursor, batch, err)
	}
}

// next waits until a batch is to be rendered, and returns its cursor.
func (s *Source) next(ctx context.Context) (*Reader, int64, error) {
	type work struct {
		reader *Reader
		cursor int64
	}
	found, err := wait.For(ctx, &s.changes, func() (work, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.begun || s.failed != nil {
			return work{}, false
		}
		cursor := s.at.Cursor
		if current, ok := s.rendered[cursor]; ok {
			cursor = current.Next
		}
		_, known := s.rendered[cursor]
		return work{s.reader, cursor}, !known
	})
	return found.reader, found.cursor, err
}

func (s *Source) add(cursor int64, batch supervised.Batch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changes.Notify()
	if err != nil {
		// The batch after the current one may not be needed, and is tried again once it is.
		if cursor == s.at.Cursor {
			s.failed = err
		}
		return
	}
	s.rendered[cursor] = batch
	for _, t := range batch.Tombstones {
		if !s.warned[t.Unusable.Reason] {
			s.warned[t.Unusable.Reason] = true
			s.logger.Warn("row is left out; others for the same reason are only counted", "split", t.Task.Split,
				"row", t.Task.Index+1, "reason", t.Unusable.Reason, "err", t.Unusable.Err)
		}
	}
}

// Batch waits until the current batch is rendered. Slots that the endpoint refuses keep their places and are left out.
func (s *Source) Batch(ctx context.Context) (leases.Batch, error) {
	type result struct {
		batch leases.Batch
		err   error
	}
	got, err := wait.For(ctx, &s.changes, func() (result, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		batch, ok := s.rendered[s.at.Cursor]
		switch {
		case s.failed != nil:
			err := s.failed
			s.failed = nil // it is read again with the next model
			return result{err: err}, true
		case !ok:
			return result{}, false
		}
		return result{batch: s.batch(batch)}, true
	})
	if err != nil {
		return leases.Batch{}, err
	}
	return got.batch, got.err
}

// batch makes a batch of rendered rows. The lock is held.
func (s *Source) batch(b supervised.Batch) leases.Batch {
	out := leases.Batch{
		Slots: rl.Batch{Step: s.at.Step, Version: s.at.Step, First: b.First, Next: b.Next, Certain: true},
		After: rl.Position{Step: s.at.Step + 1, Cursor: b.Next}, Version: leases.Version{Step: s.at.Step},
		Groups: groupsOf(b),
	}
	for i, group := range out.Groups {
		if why, refused := s.refused[group.Key.Slot]; refused {
			out.Groups[i] = group.Tombstone(rl.InvalidTokens, why)
		}
		if out.Groups[i].Outcome == rl.Usable {
			out.Slots.Members = append(out.Slots.Members, group.Key.Slot)
		}
		out.Digests = append(out.Digests, out.Groups[i].Digest())
	}
	return out
}

// Reject makes a tombstone of a row that the endpoint refuses.
func (s *Source) Reject(key rl.Key, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[key.Slot] = why
}

// Progress reports nothing: rows are read and not sampled.
func (s *Source) Progress() (known, all int) { return 0, 0 }

// Task returns the row of a slot.
func (s *Source) Task(slot int64) rl.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader.batches.Stream.Task(slot)
}

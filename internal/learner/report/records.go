// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// maxKept limits the records that are kept for a manager that does not ask. Further records are thinned like the
// history, which has fewer rows.
const maxKept = 1024

// records are the records that the manager has not stored yet.
type records struct {
	kept []contract.Record
	// newest is the number of the newest record, and known the number of the newest record that the manager has stored.
	newest, known int64
	// asked is the time at which the manager last asked for records.
	asked time.Time
	// stored is notified when known grows.
	stored wait.Signal
}

// AddRecord adds a record to the records that heartbeats carry, numbers it and keeps its main figures.
func (s *Status) AddRecord(record contract.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.records
	r.newest++
	record.Number, record.Metrics = r.newest, contract.RecordMetrics(record.Metrics)
	r.kept = append(r.kept, record)
	if len(r.kept) > maxKept {
		r.kept = history.Thin(r.kept, maxKept)
		r.kept = r.kept[max(0, len(r.kept)-maxKept):]
	}
	s.reply.Sequence++
}

// Records returns the records that a heartbeat asks for and whether there are more of them, and drops the records that
// the manager has stored.
func (s *Status) Records(request contract.HeartbeatRequest) ([]contract.Record, bool) {
	if request.HistoryVersion < contract.HistoryVersion {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.records
	r.asked = s.now()
	if request.KnownRecords > r.known {
		r.known = min(request.KnownRecords, r.newest)
		r.kept = slices.DeleteFunc(r.kept, func(record contract.Record) bool { return record.Number <= r.known })
		r.stored.Notify()
	}
	n := fitting(r.kept)
	return slices.Clone(r.kept[:n]), n < len(r.kept)
}

// fitting returns the number of first records that fit into one reply. It is at least one, so that the manager
// receives all records in the end.
func fitting(kept []contract.Record) int {
	most := min(len(kept), contract.MaxRecords)
	for n, bytes := 0, 0; n < most; n++ {
		data, err := json.Marshal(kept[n])
		if err != nil {
			panic("report: encoding a record: " + err.Error()) // It has plain fields, and its numbers are finite.
		}
		if bytes += len(data) + 1; bytes > contract.MaxRecordsBytes {
			return max(1, n)
		}
	}
	return most
}

// AwaitRecords waits until the manager has stored all records, as long as it asks for them and for patience at most: a
// learner that ends has no other way to report its last steps.
func (s *Status) AwaitRecords(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// It is not an error if the context ends first.
	_, _ = wait.For(ctx, &s.records.stored, func() (struct{}, bool) { return struct{}{}, !s.awaitsManager(patience) })
}

// awaitsManager reports whether the manager still asks for records, and has not stored all of them.
func (s *Status) awaitsManager(patience time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.records
	return len(r.kept) > 0 && !r.asked.IsZero() && s.now().Sub(r.asked) <= patience
}

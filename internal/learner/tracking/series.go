// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// rows reads rows that were committed.
type rows interface {
	HasStore() bool
	Row(v rl.Version) (artifacts.Row, error)
}

// maxKept limits the rows in memory. Further rows are read again from the store; without a store, the oldest are
// dropped.
const maxKept = 4096

// series is the sequence of a run's lines. It is safe for concurrent use.
type series struct {
	source rows

	mu sync.Mutex
	// entries are the committed steps on the chain of the newest version, in order.
	entries []entry
	// results are the metrics of evaluations. waiting are the versions with evaluations that have begun, and settled
	// the versions with evaluations that have ended, as this process knows.
	results          map[rl.Version]map[string]float64
	waiting, settled map[rl.Version]bool
	// newest is the version that is saved, and up to which lines are available.
	newest rl.Version
	// last is set once the newest version is the run's last.
	last bool
	// reached is the newest version up to which lines were available, and rewinds counts the returns to versions before
	// it.
	reached rl.Version
	rewinds atomic.Int64
	// dropped counts the steps that were dropped before a service received them.
	dropped atomic.Int64
	changes wait.Signal
}

// entry is a step that is committed.
type entry struct {
	row rl.Version
	// parent is the lineage of the version before, whose evaluation is in the line of the step.
	parent rl.Lineage
	// metrics are nil if they are to be read from the store.
	metrics map[string]float64
	time    time.Time
}

func newSeries(source rows) *series {
	return &series{
		source: source, results: map[rl.Version]map[string]float64{}, waiting: map[rl.Version]bool{},
		settled: map[rl.Version]bool{},
	}
}

// change changes the series, and wakes the goroutines that wait for a change.
func (s *series) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.changes.Notify()
}

// resume sets the series to a version that was loaded. chain has the rows that led to it, the newest first. Without a
// store, chain may be empty; then the known steps up to that version stay. No line is available before advance.
func (s *series) resume(at rl.Version, chain []artifacts.Row) {
	s.change(func() {
		if at.Step < s.reached.Step || at.Step == s.reached.Step && at.Lineage != s.reached.Lineage {
			s.reached = at
			s.rewinds.Add(1)
		}
		s.newest, s.last = rl.Version{}, false // which evaluations are outstanding is not known before advance
		known := map[rl.Version]entry{}
		for _, e := range s.entries {
			known[e.row] = e
		}
		s.entries = slices.DeleteFunc(s.entries, func(e entry) bool { return e.row.Step > at.Step })
		if len(chain) == 0 {
			return
		}
		s.entries = nil
		for _, row := range slices.Backward(chain) {
			e, ok := known[row.Version]
			if !ok {
				e = entryOf(row)
				e.metrics = nil
			}
			s.entries = append(s.entries, e)
		}
	})
}

func entryOf(row artifacts.Row) entry {
	e := entry{row: row.Version, parent: row.Parent, metrics: row.Metrics, time: time.Unix(row.Time, 0)}
	if row.Time == 0 {
		e.time = time.Now() // an earlier version of the program wrote the row
	}
	return e
}

// commit appends a step.
func (s *series) commit(row artifacts.Row) {
	s.change(func() {
		for n := len(s.entries); n > 0 && s.entries[n-1].row.Step >= row.Step; n-- {
			s.entries = s.entries[:n-1]
		}
		s.entries = append(s.entries, entryOf(row))
		if len(s.entries) <= maxKept {
			return
		}
		if s.source.HasStore() {
			s.entries[len(s.entries)-maxKept-1].metrics = nil
			return
		}
		s.entries = slices.Delete(s.entries, 0, 1)
		s.dropped.Add(1)
	})
}

// advance makes lines available up to a version that is saved, but only before the first line whose evaluation has no
// result yet.
func (s *series) advance(at rl.Version, last bool, outstanding []rl.Version) {
	s.change(func() {
		s.newest, s.last, s.reached = at, last, at
		clear(s.waiting)
		for _, v := range outstanding {
			s.waiting[v] = true
		}
	})
}

// evaluated adds the metrics of an evaluation. settled says that this process has ended the evaluation, even if it has
// no metrics.
func (s *series) evaluated(v rl.Version, metrics map[string]float64, settled bool) {
	s.change(func() {
		if settled {
			s.settled[v] = true
		}
		if len(metrics) == 0 {
			return
		}
		all := map[string]float64{}
		maps.Copy(all, s.results[v])
		maps.Copy(all, metrics)
		s.results[v] = all
	})
}

// forget drops the steps that no sink requires any longer, if there is no store to read them from again.
func (s *series) forget(before int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.source.HasStore() {
		s.entries = slices.DeleteFunc(s.entries, func(e entry) bool { return e.row.Step-1 < before })
	}
}

// lines returns at most limit lines after a step, and a channel that is closed when there may be more.
func (s *series) lines(after int64, limit int) ([]Line, <-chan struct{}, error) {
	changed := s.changes.Changed()
	s.mu.Lock()
	found := s.available(after, limit)
	s.mu.Unlock()
	list := make([]Line, 0, len(found))
	for _, e := range found {
		line, err := s.line(e)
		if err != nil {
			return list, changed, err
		}
		if line != nil {
			list = append(list, *line)
		}
	}
	return list, changed, nil
}

// available returns the entries of the lines after a step, with the metrics of their evaluations.
func (s *series) available(after int64, limit int) []evaluatedEntry {
	var found []evaluatedEntry
	first, _ := slices.BinarySearchFunc(s.entries, after+1,
		func(e entry, step int64) int { return cmp.Compare(e.row.Step-1, step) })
	for _, e := range s.entries[first:] {
		version := rl.Version{Step: e.row.Step - 1, Lineage: e.parent}
		if len(found) == limit || e.row.Step > s.newest.Step || s.waiting[version] && !s.settled[version] {
			return found
		}
		found = append(found, evaluatedEntry{entry: e, evaluation: s.results[version]})
	}
	// The last version has a line with its evaluation alone.
	if result := s.results[s.newest]; s.last && result != nil && after < s.newest.Step && len(found) < limit {
		found = append(found, evaluatedEntry{
			entry:      entry{row: rl.Version{Step: s.newest.Step + 1}, metrics: map[string]float64{}, time: time.Now()},
			evaluation: result,
		})
	}
	return found
}

// evaluatedEntry is a step with the evaluation of the version that it began with.
type evaluatedEntry struct {
	entry
	evaluation map[string]float64
}

// line returns the line of an entry, or nil if the row of the entry no longer exists.
func (s *series) line(e evaluatedEntry) (*Line, error) {
	metrics := e.metrics
	if metrics == nil {
		row, err := s.source.Row(e.row)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading what is to be recorded: %w", err)
		}
		metrics = row.Metrics
	}
	line := Line{Step: e.row.Step - 1, Time: e.time, Metrics: map[string]float64{}}
	maps.Copy(line.Metrics, metrics)
	maps.Copy(line.Metrics, e.evaluation)
	return &line, nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"math"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// historyPatience is the maximum time for which a learner that ends waits until the manager has stored its last
// records.
const historyPatience = 8 * time.Second

// repeated is the number of rows that are reported again when a learner opens another model: the manager may not have
// received the newest.
const repeated = 64

// recorder reports records to the manager for its history of the run, and committed steps to the services that show the
// run's curves.
type recorder struct {
	attempt int32
	status  *report.Status
	book    *checkpoints.Book
	journal *artifacts.Journal
	tracker *tracking.Tracker
	now     func() time.Time
}

// step reports a committed step to the manager, and to the services that show the run's curves.
func (r *recorder) step(row artifacts.Row) {
	r.tracker.Commit(row)
	record := recordOf(row)
	record.Time = r.now().Unix()
	r.status.AddRecord(record)
}

// evaluation reports an evaluation to the manager, if the run continues from its version.
func (r *recorder) evaluation(step int64, metrics map[string]float64) {
	version, known := r.book.Version(step)
	if !known || len(metrics) == 0 {
		return
	}
	r.status.AddRecord(contract.Record{
		Step: step, Lineage: version.Lineage.Short(), Attempt: r.attempt, Time: r.now().Unix(), Evaluation: true,
		Metrics: metrics,
	})
}

// resumed reports the version that was loaded, and the steps before it as the rows have them. For the first model of a
// learner it reports all of them, since the manager may have received none.
func (r *recorder) resumed(at checkpoints.Position, first bool) {
	r.status.AddRecord(contract.Record{Step: at.Step, Lineage: at.Lineage.Short(), Resumed: true})
	limit := repeated
	if first {
		limit = math.MaxInt
	}
	evaluations := r.evaluations()
	var records []contract.Record
	for version := range r.journal.Chain(at.Version) {
		if len(records) >= limit {
			break
		}
		records = append(records, evaluations[version.Version]...)
		if version.Row != nil {
			row := *version.Row
			row.Metrics = contract.RecordMetrics(version.Metrics())
			records = append(records, recordOf(row))
		}
	}
	for _, record := range slices.Backward(records) {
		r.status.AddRecord(record)
	}
}

// evaluations returns records of the evaluations that earlier attempts completed, by their versions.
func (r *recorder) evaluations() map[rl.Version][]contract.Record {
	found := map[rl.Version][]contract.Record{}
	for _, e := range r.journal.Evaluations() {
		if len(e.Metrics) > 0 {
			record := recordOf(artifacts.Row{Version: e.Version, Attempt: e.Attempt, Metrics: e.Metrics})
			record.Evaluation = true
			found[e.Version] = append(found[e.Version], record)
		}
	}
	return found
}

func recordOf(row artifacts.Row) contract.Record {
	return contract.Record{
		Step: row.Step, Lineage: row.Lineage.Short(), Attempt: row.Attempt, Time: row.Time, Metrics: row.Metrics,
	}
}

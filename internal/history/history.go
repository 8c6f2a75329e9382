// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package history is the bounded history of a run's committed steps: which rows it keeps, and how it is encoded. The
// manager writes it into ConfigMaps and kubectl tinker reads it.
package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// Bounds of a history.
const (
	// MaxRows limits its rows.
	MaxRows = 512
	// MaxBytes limits all parts of its encoding together.
	MaxBytes = 240 << 10
	// maxRowMetrics is the maximum number of metrics in a row: the metrics of a step and of an evaluation.
	maxRowMetrics = 2 * contract.MaxRecordMetrics
)

// Row describes one version of the policy: the figures of the step that made it, and the figures of its evaluation.
type Row struct {
	// Step is the number of the version.
	Step    int64
	Lineage string
	Attempt int32
	// Time is the time at which the step was committed, in seconds since 1970.
	Time    int64
	Metrics map[string]float64
}

// Evaluated reports whether the row has figures of an evaluation.
func (r Row) Evaluated() bool {
	for name := range r.Metrics {
		if isEvaluation(name) {
			return true
		}
	}
	return false
}

func isEvaluation(name string) bool { return strings.HasPrefix(name, "test/") }

// History is the history of a run. Its zero value is empty.
type History struct {
	// Stride is the distance of the steps that are kept; it grows with the run.
	Stride int64
	// Source is the process whose records were added last, and Known the number of its newest record.
	Source string
	Known  int64
	// Rows are in the order of their steps.
	Rows []Row
	// chunks are the chunks from which the history was decoded, or as which it was last encoded.
	chunks []chunk
}

// KnownOf returns the number of the newest record of a process that was added.
func (h *History) KnownOf(source string) int64 {
	if h.Source != source {
		return 0
	}
	return h.Known
}

// Add adds the records of a process that were not added before, and reports whether there were any.
func (h *History) Add(source string, records []contract.Record) bool {
	added := false
	for _, record := range records {
		if record.Number <= h.KnownOf(source) {
			continue
		}
		h.Source, h.Known, added = source, record.Number, true
		switch {
		case record.Resumed:
			h.truncate(record)
		case record.Evaluation:
			h.addEvaluation(record)
		default:
			h.addStep(record)
		}
		h.thin()
	}
	return added
}

// truncate removes the rows that do not lead to the loaded version: the rows of later steps, and the row of the same
// step if it describes another version, as happens when a run begins anew with other settings.
func (h *History) truncate(record contract.Record) {
	at, found := h.find(record.Step)
	if found && (record.Lineage == "" || h.Rows[at].Lineage == record.Lineage) {
		at++
	}
	h.Rows = h.Rows[:at]
}

// addStep adds the row of a step, or replaces it if the step was made again.
func (h *History) addStep(record contract.Record) {
	row := rowOf(record)
	at, found := h.find(record.Step)
	if !found {
		h.Rows = slices.Insert(h.Rows, at, row)
		return
	}
	before := h.Rows[at]
	if before.Lineage != record.Lineage {
		h.Rows = append(h.Rows[:at], row)
		return
	}
	// The same version may have been evaluated before.
	for name, value := range before.Metrics {
		if _, given := row.Metrics[name]; !given && isEvaluation(name) {
			row.Metrics[name] = value
		}
	}
	row.Metrics = contract.MainMetrics(row.Metrics, maxRowMetrics)
	if row.Time == 0 {
		row.Time = before.Time
	}
	h.Rows[at] = row
}

// addEvaluation completes the row of the version. No step makes version 0, so its row has only an evaluation, as has
// the row of a version that was thinned out.
func (h *History) addEvaluation(record contract.Record) {
	at, found := h.find(record.Step)
	switch {
	case !found:
		h.Rows = slices.Insert(h.Rows, at, rowOf(record))
	case h.Rows[at].Lineage == record.Lineage:
		row := &h.Rows[at]
		maps.Copy(row.Metrics, record.Metrics)
		row.Metrics = contract.MainMetrics(row.Metrics, maxRowMetrics)
	}
}

func rowOf(record contract.Record) Row {
	row := Row{Step: record.Step, Lineage: record.Lineage, Attempt: record.Attempt, Time: record.Time,
		Metrics: map[string]float64{}}
	maps.Copy(row.Metrics, contract.MainMetrics(record.Metrics, maxRowMetrics))
	return row
}

func (h *History) find(step int64) (int, bool) {
	return slices.BinarySearchFunc(h.Rows, step, func(r Row, step int64) int { return cmp.Compare(r.Step, step) })
}

// maxStride is more than the steps of any run. A stride that grew beyond it would overflow.
const maxStride = 1 << 40

// thin drops rows until at most MaxRows are left. The steps alone decide which rows are left: the rows on the stride,
// the newest, and the rows with an evaluation as long as at most half of MaxRows have one.
func (h *History) thin() {
	h.Stride = min(max(1, h.Stride), maxStride)
	h.drop()
	for len(h.Rows) > MaxRows {
		h.coarsen()
	}
}

// coarsen drops at least one row of two or more, whatever their steps are and however many have an evaluation, and
// never the newest. Rows without an evaluation are dropped first, until rows with an evaluation are more than half.
func (h *History) coarsen() {
	for before := len(h.Rows); h.Stride < maxStride; {
		if 2*h.evaluated() > len(h.Rows) {
			h.dropOff(true)
		}
		if len(h.Rows) < before {
			return
		}
		h.Stride *= 2
		h.drop()
		if len(h.Rows) < before {
			return
		}
	}
	h.Rows = h.Rows[(len(h.Rows)+1)/2:]
}

func (h *History) drop() { h.dropOff(h.evaluated() > MaxRows/2) }

// dropOff drops the rows off the stride except the newest, and rows with an evaluation only if evaluated is set.
func (h *History) dropOff(evaluated bool) {
	if h.Stride == 1 || len(h.Rows) == 0 {
		return
	}
	newest := h.Rows[len(h.Rows)-1].Step
	h.Rows = slices.DeleteFunc(h.Rows, func(r Row) bool {
		return r.Step != newest && r.Step%h.Stride != 0 && (evaluated || !r.Evaluated())
	})
}

// evaluated counts the rows with an evaluation.
func (h *History) evaluated() int {
	n := 0
	for _, row := range h.Rows {
		if row.Evaluated() {
			n++
		}
	}
	return n
}

// Thin returns records in their order, at most limit of them. To get there it leaves out records of steps that a
// history of all records would not keep. It keeps records which say that steps were lost. If limit is at least MaxRows,
// a history of the remaining records has the same rows as a history of all records.
func Thin(records []contract.Record, limit int) []contract.Record {
	for stride := int64(2); len(records) > limit && stride < maxStride; stride *= 2 {
		var newest int64
		evaluated := map[int64]bool{}
		for _, r := range records {
			newest = max(newest, r.Step)
			if rowOf(r).Evaluated() {
				evaluated[r.Step] = true
			}
		}
		crowded := len(evaluated) > MaxRows/2
		records = slices.DeleteFunc(records, func(r contract.Record) bool {
			return !r.Resumed && r.Step != newest && r.Step%stride != 0 && (crowded || !evaluated[r.Step])
		})
	}
	return records
}

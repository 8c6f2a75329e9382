// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// HistoryVersion is the version of the records that heartbeats carry.
const HistoryVersion = 1

// Bounds of the records in one reply.
const (
	// MaxRecords limits the records of a reply.
	MaxRecords = 128
	// MaxRecordsBytes limits the encoding of the records of one reply. Managers before this bound read 256 KiB of a reply,
	// and later ones twice as much.
	MaxRecordsBytes = 96 << 10
	// MaxRecordMetrics limits the metrics of a record.
	MaxRecordMetrics = 32
	// MaxMetricName limits the name of a metric in a record, in bytes.
	MaxMetricName = 256
)

// Record has the figures of a committed step, or of the evaluation of a committed version; or it says that steps were
// lost.
type Record struct {
	// Number counts the records of one learner process from 1.
	Number int64 `json:"number"`
	// Step is the number of the version that the step made, or that was evaluated.
	Step int64 `json:"step"`
	// Lineage identifies that version.
	Lineage string `json:"lineage"`
	// Attempt is the attempt that made the step.
	Attempt int32 `json:"attempt,omitempty"`
	// Time is the time of its commit or evaluation, in seconds since 1970; 0 if not known.
	Time int64 `json:"time,omitempty"`
	// Resumed says that the run continues from this version: later ones were lost. Such a record has no metrics.
	Resumed bool `json:"resumed,omitempty"`
	// Evaluation says that the metrics belong to an evaluation.
	Evaluation bool `json:"evaluation,omitempty"`
	// Metrics are the main figures under the names of metrics.jsonl.
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

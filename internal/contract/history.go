// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// HistoryVersion is the version of the records that heartbeats carry.
const HistoryVersion = 1

// Bounds of the records in one reply.
const (
	// MaxRecords is how many records a reply has at most.
	MaxRecords = 128
	// MaxRecordsBytes is how long the encoding of the records of one reply is at most. Managers before this bound read 256
	// KiB of a reply, and later ones twice that.
	MaxRecordsBytes = 96 << 10
	// MaxRecordMetrics is how many metrics a record has at most.
	MaxRecordMetrics = 32
	// MaxMetricName is how long the name of a metric in a record is at most, in bytes.
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
	// Time is when it was committed or evaluated, in seconds since 1970; 0 if that is not known.
	Time int64 `json:"time,omitempty"`
	// Resumed says that the run continues from this version: later ones were lost. Such a record has no metrics.
	Resumed bool `json:"resumed,omitempty"`
	// Evaluation says that the metrics are those of an evaluation.
	Evaluation bool `json:"evaluation,omitempty"`
	// Metrics are the main figures under the names of metrics.jsonl.
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// recorded are the metrics besides those that the status shows that records have.
var recorded = []string{
	"optim/lr", "batch/groups", "batch/groups_usable", "batch/prompt_tokens", "batch/sampled_tokens", "batch/lag",
	"time/sampling", "time/train_step", "time/save_checkpoint",
	"env/all/correct", "env/all/truncated", "env/all/fault_ratio", "env/all/turns_per_episode",
	"env/all/by_group/frac_mixed",
}

// unranked is the order of the metrics that rank leaves out.
const unranked = 4

// rank orders metrics by how much people want to see them in a history; ok is false for those that it leaves out.
func rank(name string) (order int, ok bool) {
	switch {
	case shown[name]:
		return 0, true
	case strings.HasPrefix(name, "test/") && (strings.Contains(name, "pass@") || strings.HasSuffix(name, "reward/total")):
		return 1, true
	case slices.Contains(recorded, name):
		return 2, true
	case strings.HasPrefix(name, "loss:"), strings.HasPrefix(name, "env/") && strings.HasSuffix(name, "/reward/total"):
		return 3, true
	default:
		return 0, false
	}
}

// RecordMetrics returns the finite metrics that a history keeps, at most MaxRecordMetrics.
func RecordMetrics(metrics map[string]float64) map[string]float64 {
	kept := maps.Clone(metrics)
	maps.DeleteFunc(kept, func(name string, _ float64) bool {
		_, ok := rank(name)
		return !ok
	})
	return MainMetrics(kept, MaxRecordMetrics)
}

// MainMetrics returns at most limit metrics, those that people want to see most, without any that is not finite or has
// a name of more than MaxMetricName bytes. What this version of the program does not know comes last.
func MainMetrics(metrics map[string]float64, limit int) map[string]float64 {
	if metrics == nil {
		return nil
	}
	type candidate struct {
		name  string
		order int
	}
	var kept []candidate
	for name, value := range metrics {
		if !finite.Is(value) || len(name) > MaxMetricName {
			continue
		}
		order, ok := rank(name)
		if !ok {
			order = unranked
		}
		kept = append(kept, candidate{name: name, order: order})
	}
	slices.SortFunc(kept, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.order, b.order), strings.Compare(a.name, b.name))
	})
	out := map[string]float64{}
	for _, c := range kept[:min(len(kept), limit)] {
		out[c.name] = metrics[c.name]
	}
	return out
}

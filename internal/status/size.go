// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// MaxBytes is the maximum size of a TrainingRun's status.
const MaxBytes = 16 << 10

// Fit shortens a status to MaxBytes: messages of earlier attempts first, then faults of all environments but the first,
// then the oldest checkpoints except the best, then the oldest attempts, the capabilities of the endpoint, and the last
// estimates of environments. The newest element of each list always stays, and so do all other fields.
func Fit(next *v1alpha1.TrainingRunStatus) {
	for size(next) > MaxBytes && shorten(next) {
	}
}

func shorten(next *v1alpha1.TrainingRunStatus) bool {
	for i := len(next.Attempts) - 1; i > 0; i-- {
		if next.Attempts[i].Message != "" {
			next.Attempts[i].Message = ""
			return true
		}
	}
	for i := len(next.Environments) - 1; i > 0; i-- {
		if next.Environments[i].Fault != "" {
			next.Environments[i].Fault = ""
			return true
		}
	}
	if dropCheckpoint(next) {
		return true
	}
	if n := len(next.Attempts); n > 3 {
		next.Attempts = next.Attempts[:n-1]
		return true
	}
	if c := next.Capabilities; c != nil && len(c.Supported) > 0 {
		c.Supported = nil
		return true
	}
	most := -1
	for i, e := range next.Environments {
		if len(e.Evaluation) > 0 && (most < 0 || len(e.Evaluation) >= len(next.Environments[most].Evaluation)) {
			most = i
		}
	}
	if most < 0 {
		return false
	}
	e := &next.Environments[most]
	e.Evaluation = e.Evaluation[:len(e.Evaluation)-1]
	return true
}

func size(next *v1alpha1.TrainingRunStatus) int {
	data, err := json.Marshal(next)
	if err != nil {
		// A status has only plain fields, and its numbers are finite.
		panic("status: encoding: " + err.Error())
	}
	return len(data)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/tinker-operator/tinker-operator/api/v1alpha1"

// LatestStep is the step of the newest checkpoint; 0 without one.
func LatestStep(s *v1alpha1.TrainingRunStatus) int64 {
	if s.LatestCheckpoint == nil {
		return 0
	}
	return s.LatestCheckpoint.Step
}

// AllCheckpoints are those that a status names: the newest and the best, of which it has all fields, and the window, of
// which it has the step, the state and its times.
func AllCheckpoints(s *v1alpha1.TrainingRunStatus) []v1alpha1.Checkpoint {
	var all []v1alpha1.Checkpoint
	for _, c := range []*v1alpha1.Checkpoint{s.LatestCheckpoint, s.BestCheckpoint} {
		if c != nil {
			all = append(all, *c)
		}
	}
	return append(all, s.Checkpoints...)
}

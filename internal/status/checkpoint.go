// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Latest returns the newest checkpoint; nil if the status has none.
func Latest(s *v1alpha1.TrainingRunStatus) *v1alpha1.Checkpoint {
	return s.Checkpoint(s.LatestCheckpoint)
}

// Best returns the best checkpoint; nil if the status has none.
func Best(s *v1alpha1.TrainingRunStatus) *v1alpha1.Checkpoint { return s.Checkpoint(s.BestCheckpoint) }

// LatestStep is the step of the newest checkpoint, or 0.
func LatestStep(s *v1alpha1.TrainingRunStatus) int64 {
	if latest := Latest(s); latest != nil {
		return latest.Step
	}
	return 0
}

// Steps returns the committed steps and all steps of a run, as in 37/60; empty while one of them is not known.
func Steps(s *v1alpha1.TrainingRunStatus) string {
	if s.Step == nil || s.Steps == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", *s.Step, *s.Steps)
}

// withCheckpoint inserts a checkpoint before the first checkpoint of an earlier step.
func withCheckpoint(list []v1alpha1.Checkpoint, c v1alpha1.Checkpoint) []v1alpha1.Checkpoint {
	at := slices.IndexFunc(list, func(other v1alpha1.Checkpoint) bool { return other.Step < c.Step })
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(list, at, c)
}

// dropCheckpoint drops the last checkpoint that is neither the newest nor the best, and reports whether there was one.
func dropCheckpoint(s *v1alpha1.TrainingRunStatus) bool {
	for i := len(s.Checkpoints) - 1; i >= 0; i-- {
		if name := s.Checkpoints[i].Name; name != s.LatestCheckpoint && name != s.BestCheckpoint {
			s.Checkpoints = slices.Delete(s.Checkpoints, i, i+1)
			return true
		}
	}
	return false
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/tinker-operator/tinker-operator/api/v1alpha1"

// NewestAttempt is the number of the newest attempt that is recorded; 0 before the first.
func NewestAttempt(run *v1alpha1.TrainingRun) int32 {
	if len(run.Status.Attempts) == 0 {
		return 0
	}
	return run.Status.Attempts[0].Number
}

// AttemptEnded reports whether no attempt is in progress: none was made, or the newest has ended.
func AttemptEnded(run *v1alpha1.TrainingRun) bool {
	return len(run.Status.Attempts) == 0 || run.Status.Attempts[0].CompletionTime != nil
}

// RunFinished reports whether a run is over: complete or failed.
func RunFinished(run *v1alpha1.TrainingRun) bool {
	return IsTrue(run.Status.Conditions, v1alpha1.ConditionComplete) || IsTrue(run.Status.Conditions,
		v1alpha1.ConditionFailed)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/tinker-operator/tinker-operator/api/v1alpha1"

// WithoutAttempts returns the part of a status about the training alone: the progress of the run, its checkpoints, and
// its usage. It is the status of a run that continues another run and has made no attempt itself.
func WithoutAttempts(before v1alpha1.TrainingRunStatus) v1alpha1.TrainingRunStatus {
	before = *before.DeepCopy()
	return v1alpha1.TrainingRunStatus{
		RunUID: before.RunUID, ObservedGeneration: before.ObservedGeneration,
		ObservedRetryGeneration: before.ObservedRetryGeneration,
		Step:                    before.Step, Steps: before.Steps, Epochs: before.Epochs,
		Metrics:          before.Metrics,
		LatestCheckpoint: before.LatestCheckpoint, BestCheckpoint: before.BestCheckpoint, Checkpoints: before.Checkpoints,
		Capabilities: before.Capabilities, TokenizerSHA256: before.TokenizerSHA256,
		TemplateSHA256: before.TemplateSHA256,
		Dataset:        before.Dataset,
		ActiveSeconds:  before.ActiveSeconds, Usage: before.Usage,
	}
}

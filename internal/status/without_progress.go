// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/tinker-operator/tinker-operator/api/v1alpha1"

// WithoutProgress returns the status of a run that begins anew with other settings before its first step. Its usage
// stays.
func WithoutProgress(before v1alpha1.TrainingRunStatus, sameModel bool) v1alpha1.TrainingRunStatus {
	next := *before.DeepCopy()
	next.Metrics, next.LatestCheckpoint, next.BestCheckpoint, next.Checkpoints = nil, "", "", nil
	next.Dataset = nil
	next.Environments, next.Evaluation, next.Steps, next.Step, next.Epochs = nil, nil, nil, nil, nil
	if !sameModel {
		next.TokenizerSHA256, next.TemplateSHA256 = "", ""
	}
	return next
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestRunThatBeginsAnewHasNoFormerResults checks that a run that begins anew loses the results of its former settings,
// and keeps its usage.
func TestRunThatBeginsAnewHasNoFormerResults(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	before := v1alpha1.TrainingRunStatus{
		StartTime: &at, Step: new(int64(0)), Steps: new(int64(60)), TokenizerSHA256: "sha",
		Metrics: []v1alpha1.MetricValue{{Name: "test/pass@1", Value: 0.5}}, Evaluation: &v1alpha1.EvaluationStatus{},
		LatestCheckpoint: "b", BestCheckpoint: "b",
		Checkpoints:  []v1alpha1.Checkpoint{{Name: "b", State: "tinker://a/weights/b"}},
		Environments: []v1alpha1.EnvironmentStatus{{Name: "env", PassAt1: new(0.5)}},
		Usage:        &v1alpha1.Usage{SampledTokens: new(int64(9))},
		Attempts:     []v1alpha1.Attempt{{Number: 1, CompletionTime: &at}}, SettingsFixed: new(false),
	}
	want := v1alpha1.TrainingRunStatus{StartTime: before.StartTime, Usage: before.Usage, Attempts: before.Attempts,
		SettingsFixed: before.SettingsFixed, TokenizerSHA256: "sha"}
	if diff := cmp.Diff(want, WithoutProgress(before, true)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got := WithoutProgress(before, false).TokenizerSHA256; got != "" {
		t.Errorf("another model has to have the tokenizer %q", got)
	}
}

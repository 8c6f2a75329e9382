// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVerdictKeepsWhatIsShown fills a verdict beyond its room: what the status shows survives.
func TestVerdictKeepsWhatIsShown(t *testing.T) {
	verdict := Verdict{Cause: CauseCompleted, Attempt: 3, Message: strings.Repeat("m", 300)}
	verdict.Progress = Progress{Step: 60, Metrics: map[string]float64{MetricPassAt1: 0.87, MetricReward: 0.84}}
	for i := range 60 {
		verdict.Progress.Metrics[fmt.Sprintf("env/all/some/metric/%d", i)] = 1.0 / 3
	}
	for i := range 16 {
		verdict.Progress.Checkpoints = append(verdict.Progress.Checkpoints,
			Checkpoint{Step: int64(60 - i), State: strings.Repeat("s", 180)})
	}
	data, err := EncodeVerdict(verdict)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > MaxVerdictBytes {
		t.Errorf("the verdict has %d bytes, %d fit", len(data), MaxVerdictBytes)
	}
	got, err := DecodeVerdict(string(data))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{MetricPassAt1: 0.87, MetricReward: 0.84}
	if diff := cmp.Diff(want, got.Progress.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if len(got.Progress.Checkpoints) < 2 || got.Progress.Checkpoints[0].Step != 60 {
		t.Errorf("checkpoints %+v: the newest ones that fit are to stay", got.Progress.Checkpoints)
	}
}

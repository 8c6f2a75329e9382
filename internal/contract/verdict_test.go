// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func TestVerdictFits(t *testing.T) {
	path := "tinker://" + strings.Repeat("m", 60) + "/weights/" + strings.Repeat("n", 80)
	progress := Progress{Step: 60, Metrics: map[string]float64{}, Best: &Checkpoint{State: path, Value: new(math.Inf(1))}}
	for range 16 {
		progress.Checkpoints = append(progress.Checkpoints, Checkpoint{Step: 60, State: path, Sampler: path,
			Lineage: strings.Repeat("a", 64)})
	}
	for i := range 60 {
		progress.Metrics["a/metric/with/a/long/name/"+strings.Repeat("x", i)] = float64(i)
	}
	for range 32 {
		progress.Environments = append(progress.Environments, EnvironmentMetrics{Name: strings.Repeat("e", 63),
			Reward: new(0.5)})
	}
	for i := range 16 {
		last := &progress.Environments[i%4]
		last.Evaluation = append(last.Evaluation, Estimate{Name: fmt.Sprintf("pass@%d", i), Value: 0.5, Low: new(0.25),
			High: new(math.NaN())}, Estimate{Name: "reward/total"})
	}
	progress.Capabilities = &Capabilities{BaseURL: "http://tinkersim", Model: "m"}
	for i := range 64 {
		progress.Capabilities.Supported = append(progress.Capabilities.Supported, fmt.Sprintf("%064d", i))
	}
	sent := Verdict{Cause: CauseCrashed, Reason: "R", Message: strings.Repeat("é", 3000), Attempt: 4, Progress: progress}
	data, err := EncodeVerdict(sent)
	if err != nil {
		t.Fatalf("EncodeVerdict: %v", err)
	}
	if len(data) > MaxVerdictBytes {
		t.Errorf("verdict has %d bytes, at most %d fit", len(data), MaxVerdictBytes)
	}
	got, err := DecodeVerdict(string(data))
	if err != nil {
		t.Fatalf("DecodeVerdict: %v", err)
	}
	if got.Cause != CauseCrashed || got.Attempt != 4 || got.Progress.Step != 60 || len(got.Progress.Checkpoints) == 0 ||
		got.Progress.Checkpoints[0].State != path {
		t.Errorf("the verdict lost decisive fields: %+v", got)
	}
}

func TestVerdictRoundTrip(t *testing.T) {
	want := Verdict{Cause: CauseCompleted, Reason: "R", Message: "m", Attempt: 1, Progress: Progress{
		Phase: PhaseDone, Step: 60, Checkpoints: []Checkpoint{{Step: 60, State: "s", Value: new(0.5)}},
		Environments: []EnvironmentMetrics{{
			Name: "e", PassAt1: new(0.25), Evaluation: []Estimate{{Name: "pass@1", Value: 0.25, Low: new(0.125), High: new(0.5)},
				{Name: "solver_acc", Value: 1}},
		}},
		Capabilities: &Capabilities{BaseURL: "u", Model: "m", Ignored: []string{CapabilitySeed}}, ColdOptimizer: true,
	}}
	data, err := EncodeVerdict(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeVerdict(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the verdict changed on its way (-written +read):\n%s", diff)
	}
}

func TestWhatIsNoVerdict(t *testing.T) {
	for _, text := range []string{"", "panic: oh", "{}", `{"cause": "Completed"}`, `{"attempt": 1}`,
		`{"cause": "Completed", "attempt": 1`} {
		if v, err := DecodeVerdict(text); err == nil {
			t.Errorf("%q was taken for %+v", text, v)
		}
	}
}

func TestExitCodes(t *testing.T) {
	want := map[Cause]int{
		CauseCompleted: 0, CauseConfigRejected: 64, CauseDataRejected: 65, CauseDrained: 75, CauseUpstream: 75,
		CauseFenced: 77, CauseCrashed: 1, CauseUnknown: 1,
	}
	for cause, code := range want {
		if got := cause.ExitCode(); got != code {
			t.Errorf("%s exits with %d, want %d", cause, got, code)
		}
	}
}

func FuzzDecodeVerdict(f *testing.F) {
	f.Add(`{"cause":"Completed","attempt":1,"progress":{"step":3}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := DecodeVerdict(text)
		if err != nil {
			return
		}
		if _, err := EncodeVerdict(v); err != nil && len(text) < 1000 {
			t.Errorf("a short verdict that was read cannot be written: %v", err)
		}
	})
}

// TestDecodeReasonOfAnotherBuild reads termination messages with a reason that this build does not know.
func TestDecodeReasonOfAnotherBuild(t *testing.T) {
	long := strings.Repeat("é", 1000)
	v, err := DecodeVerdict(`{"cause":"Upstream","attempt":1,"reason":"` + long + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := problem.Code(long[:64]); v.Reason != want || problem.IsKnown(v.Reason) {
		t.Errorf("reason is %q, want the unknown code %q", v.Reason, want)
	}
	result, err := DecodeProbeResult(`{"ok":false,"reason":"` + long + `"}`)
	if err != nil || len(result.Reason) != 64 {
		t.Errorf("reason of the probe is %q (%v), want 64 bytes of it", result.Reason, err)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDivergePoolsActionTokens(t *testing.T) {
	datums := []Datum{
		{Targets: []int32{1, 2, 3}, Mask: []bool{false, true, true}, Logprobs: []float32{0, -1, -2}},
		{Targets: []int32{4}, Mask: []bool{true}, Logprobs: []float32{-3}},
	}
	got, err := Diverge(datums, [][]float32{{-9, -1.5, -2}, {-2.5}})
	if err != nil {
		t.Fatal(err)
	}
	// Differences 0.5, 0 and -0.5 over three tokens.
	want := Divergence{V1: 0, V2: 0.5 * 0.5 / 3, Entropy: 2, Tokens: 3}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("divergence (-want +got):\n%s", diff)
	}
	names := map[string]float64{"optim/kl_sample_train_v1": got.V1, "optim/kl_sample_train_v2": got.V2,
		"optim/entropy": got.Entropy}
	if diff := cmp.Diff(names, got.Metrics()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestDivergeOfNoActionMeasuresNothing(t *testing.T) {
	got, err := Diverge([]Datum{{Targets: []int32{1}, Mask: []bool{false}, Logprobs: []float32{0}}}, [][]float32{{-1}})
	if err != nil || got != (Divergence{}) || len(got.Metrics()) != 0 {
		t.Errorf("Diverge = %+v, %v; metrics %v", got, err, got.Metrics())
	}
}

func TestDivergeRefusesRepliesOfOtherDatums(t *testing.T) {
	datums := []Datum{{Targets: []int32{1}, Mask: []bool{true}, Logprobs: []float32{0}}}
	for name, trained := range map[string][][]float32{"too few": nil, "too short": {{}}, "too long": {{1, 2}}} {
		if d, err := Diverge(datums, trained); err == nil {
			t.Errorf("%s: Diverge = %+v, want an error", name, d)
		}
	}
}

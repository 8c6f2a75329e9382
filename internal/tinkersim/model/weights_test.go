// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWeightsMarshal(t *testing.T) {
	w := trained(testConfig).Snapshot()
	got, err := UnmarshalWeights(testBase(), w.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(w.params.Flat(), got.params.Flat()) {
		t.Errorf("weights differ after writing and reading (-want +got):\n%.300s",
			cmp.Diff(w.params.Flat(), got.params.Flat()))
	}
}

func TestBFloat16RoundsToNearestEven(t *testing.T) {
	for name, test := range map[string]struct{ in, want float32 }{
		"exact values stay":        {1.5, 1.5},
		"down below the middle":    {1 + 1.0/512, 1},
		"up above the middle":      {1 + 0.7/128, 1 + 1.0/128},
		"to even in the middle":    {1 + 3.0/256, 1 + 2.0/128},
		"negative numbers as well": {-(1 + 3.0/256), -(1 + 2.0/128)},
		"infinity stays":           {float32(math.Inf(1)), float32(math.Inf(1))},
	} {
		if got := fromBFloat16(toBFloat16(test.in)); got != test.want {
			t.Errorf("%s: %v becomes %v, want %v", name, test.in, got, test.want)
		}
	}
	if got := fromBFloat16(toBFloat16(float32(math.NaN()))); got == got {
		t.Errorf("NaN becomes %v", got)
	}
}

// TestSnapshotIsImmutable checks that a snapshot does not change when its adapter is trained.
func TestSnapshotIsImmutable(t *testing.T) {
	a := trained(testConfig)
	w := a.Snapshot()
	before := append([]float32{}, w.params.Flat()...)
	mustRun(t, a, testBatch(3), Loss{Name: "cross_entropy"})
	mustStep(t, a, AdamParams{LearningRate: 1e-2, Beta1: .9, Beta2: .95, Eps: 1e-8})
	if !cmp.Equal(before, w.params.Flat()) {
		t.Errorf("the snapshot changed (-want +got):\n%.300s", cmp.Diff(before, w.params.Flat()))
	}
	if cmp.Equal(before, a.Snapshot().params.Flat()) {
		t.Error("training changed nothing")
	}
}

func TestPromptLogprobs(t *testing.T) {
	a := trained(testConfig)
	prompt := addition{27, 58}.prompt()
	got, err := a.Snapshot().PromptLogprobs(t.Context(), prompt)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(prompt) || got[0] == got[0] {
		t.Fatalf("%d entries, the first %v", len(got), got[0])
	}
	targets := make([]int64, len(prompt)-1)
	for i := range targets {
		targets[i] = int64(prompt[i+1])
	}
	want, err := a.Forward(t.Context(), []Datum{{Tokens: prompt[:len(targets)],
		Inputs: map[string]Tensor{"target_tokens": {Int: targets}}}},
		Loss{Name: "cross_entropy"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Logprobs[0], got[1:], cmpopts.EquateApprox(0, 0.2)); diff != "" {
		t.Errorf("(-trainer +sampler):\n%s", diff)
	}
	if cmp.Equal(want.Logprobs[0], got[1:]) {
		t.Error("the sampler's weights are not rounded")
	}
}

func TestTopKPromptLogprobs(t *testing.T) {
	w := BaseWeights(testBase())
	prompt := addition{3, 41}.prompt()
	ids, logprobs, err := w.TopKPromptLogprobs(t.Context(), prompt, Vocab)
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.PromptLogprobs(t.Context(), prompt)
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != len(prompt) || ids[0] != nil || logprobs[0] != nil {
		t.Fatalf("%d entries, the first %v, %v", len(ids), ids[0], logprobs[0])
	}
	for i := 1; i < len(prompt); i++ {
		total := 0.0
		for j, id := range ids[i] {
			total += math.Exp(float64(logprobs[i][j]))
			if j > 0 && logprobs[i][j] > logprobs[i][j-1] {
				t.Fatalf("position %d is not in falling order", i)
			}
			if id == prompt[i] && logprobs[i][j] != all[i] {
				t.Errorf("position %d: %v for the prompt's token, want %v", i, logprobs[i][j], all[i])
			}
		}
		if math.Abs(total-1) > 1e-5 {
			t.Errorf("position %d: probabilities add up to %v", i, total)
		}
	}
	few, _, err := w.TopKPromptLogprobs(t.Context(), prompt, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids[5][:2], few[5]); diff != "" {
		t.Errorf("top two (-want +got):\n%s", diff)
	}
}

func TestPromptLogprobsInvalidInput(t *testing.T) {
	w := BaseWeights(testBase())
	var user *UserError
	if _, err := w.PromptLogprobs(t.Context(), nil); !errors.As(err, &user) {
		t.Errorf("an empty prompt was read: %v", err)
	}
	for _, k := range []int{0, Vocab + 1} {
		if _, _, err := w.TopKPromptLogprobs(t.Context(), bytesOf("a"), k); !errors.As(err, &user) {
			t.Errorf("top-k of %d: %v", k, err)
		}
	}
}

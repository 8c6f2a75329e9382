// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// penaltyCase is a batch with the advantages that tinker-cookbook 0.6.1 computes (incorporate_kl_penalty, PyTorch).
type penaltyCase struct {
	Name                  string
	Coefficient, Discount float64
	Datums                []struct {
		Mask                                  []int
		Logprobs, Reference, Advantages, Want []float32
	}
	KLPolicyBase float64 `json:"klPolicyBase"`
}

// TestPenaltiesAreThoseOfTheCookbook compares with recorded results. With a discount, the cookbook also changes
// advantages of tokens that were not sampled; here they must stay 0.
func TestPenaltiesAreThoseOfTheCookbook(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "kl_penalty.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []penaltyCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	const rounding = 4e-6 // PyTorch sums in float32.
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			var datums []Datum
			for _, d := range tc.Datums {
				datum := Datum{
					Targets: make([]int32, len(d.Mask)), Logprobs: d.Logprobs, ReferenceLogprobs: d.Reference,
					Advantages: slices.Clone(d.Advantages), Mask: make([]bool, len(d.Mask)),
				}
				for i, m := range d.Mask {
					datum.Mask[i] = m == 1
				}
				datums = append(datums, datum)
			}
			mean, err := Penalise(datums, algorithm.KL{Coefficient: tc.Coefficient, Discount: tc.Discount})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(mean-tc.KLPolicyBase) > rounding {
				t.Errorf("kl_policy_base is %v, want %v", mean, tc.KLPolicyBase)
			}
			for i, d := range datums {
				for j, got := range d.Advantages {
					want := tc.Datums[i].Want[j]
					if !d.Mask[j] {
						want = 0
					}
					if math.Abs(float64(got-want)) > rounding*max(1, math.Abs(float64(want))) {
						t.Errorf("advantage %d of datum %d is %v, want %v", j, i, got, want)
					}
				}
			}
		})
	}
}

func TestPenaliseNeedsTheReference(t *testing.T) {
	complete := Datum{Targets: []int32{1}, Logprobs: []float32{-1}, ReferenceLogprobs: []float32{-1},
		Advantages: []float32{1}, Mask: []bool{true}}
	missing, prompt := complete, complete
	missing.ReferenceLogprobs = nil
	prompt.Mask = []bool{false}
	for name, datums := range map[string][]Datum{"one without": {complete, missing}, "no datum": nil,
		"prompts alone": {prompt}} {
		if _, err := Penalise(datums, algorithm.KL{Coefficient: 1}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

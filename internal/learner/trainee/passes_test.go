// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

var (
	sampling = algorithm.Loss{Name: algorithm.LossImportanceSampling}
	clipped  = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
	narrow   = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.9), ClipHigh: new(1.1)}
)

// ofRoles returns an algorithm with a loss, and with other losses of roles.
func ofRoles(loss algorithm.Loss, roles ...algorithm.Role) algorithm.Algorithm {
	return algorithm.Algorithm{Loss: loss, Roles: roles}
}

func TestEachLossHasOnePass(t *testing.T) {
	var datums []rl.Datum
	for _, role := range []string{"judge", "solver", "critic", "judge", "solver"} {
		datums = append(datums, rl.Datum{Role: role})
	}
	type want struct {
		Loss   tinker.LossName
		Places []int
	}
	cases := map[string]struct {
		alg  algorithm.Algorithm
		want []want
	}{
		"without roles there is one": {ofRoles(sampling), []want{{"importance_sampling", []int{0, 1, 2, 3, 4}}}},
		"roles of the same loss share it": {
			ofRoles(sampling, algorithm.Role{Name: "judge", Loss: &sampling}),
			[]want{{"importance_sampling", []int{0, 1, 2, 3, 4}}}},
		"the run's own is first": {
			ofRoles(sampling, algorithm.Role{Name: "critic", Loss: &clipped}, algorithm.Role{Name: "judge", Loss: &narrow},
				algorithm.Role{Name: "solver", Loss: &clipped}),
			[]want{{"ppo", []int{1, 2, 4}}, {"ppo", []int{0, 3}}}},
		"roles without a loss of their own have the run's": {
			ofRoles(sampling, algorithm.Role{Name: "judge", Loss: &clipped}),
			[]want{{"importance_sampling", []int{1, 2, 4}}, {"ppo", []int{0, 3}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []want
			for _, p := range LossesOf(tc.alg).split(datums) {
				got = append(got, want{p.loss.Name, p.places})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("passes (-want +got):\n%s", diff)
			}
		})
	}
	if passes := LossesOf(ofRoles(sampling)).split(nil); len(passes) != 0 {
		t.Errorf("no data has %d passes", len(passes))
	}
}

// trainRoles trains one step of data whose roles alternate on a new model, and returns its log-probs and loss.
func trainRoles(t *testing.T, alg algorithm.Algorithm) Replies {
	t.Helper()
	o, _ := opener(t)
	training := step
	training.Substeps, training.Losses = 1, LossesOf(alg)
	training.Datums = nil
	for i, role := range []string{"solver", "judge", "solver", "judge"} {
		d := datum(int32(50 + i))
		d.Role = role
		training.Datums = append(training.Datums, d)
	}
	submitted, err := fresh(t, o).Train(t.Context(), training)
	if err != nil {
		t.Fatal(err)
	}
	replies, err := submitted.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return replies
}

// TestPassesOfTwoLosses checks that two passes over parts of the data return the same as one pass over all data:
// log-probabilities in the data's order, and a loss that adds up.
func TestPassesOfTwoLosses(t *testing.T) {
	one := trainRoles(t, ofRoles(sampling))
	// The ratio is not clipped between these thresholds, so the losses are equal.
	wide := algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.0), ClipHigh: new(1e9)}
	two := trainRoles(t, ofRoles(sampling, algorithm.Role{Name: "judge", Loss: &wide}))
	if diff := cmp.Diff(one.Logprobs, two.Logprobs); diff != "" {
		t.Errorf("log-probs of two passes (-one pass +two):\n%s", diff)
	}
	if a, b := one.Metrics[lossSum], two.Metrics[lossSum]; a == 0 || a-b > 1e-4 || b-a > 1e-4 {
		t.Errorf("the loss of two passes is %v, and the loss of one pass %v", b, a)
	}
}

// TestGSPOTakesTheRatioOfSampledTokens compares a GSPO step with a cross_entropy step whose weights are the slopes of
// the published formula, for samples of an older policy, as with a lag.
func TestGSPOTakesTheRatioOfSampledTokens(t *testing.T) {
	data := func(before [][]float32) (datums []rl.Datum) {
		for i, shift := range []float32{-0.4, 0.1, 0.5} {
			d := rl.Datum{
				Tokens: []int32{49, 43, 50, 51}, Targets: []int32{43, 50, 51, int32(52 + i)}, Logprobs: make([]float32, 4),
				Advantages: []float32{0, 0, 1 - float32(i), 1 - float32(i)}, Mask: []bool{false, false, true, true},
			}
			for j := 2; j < 4 && before != nil; j++ {
				d.Logprobs[j] = before[i][j] - shift*float32(j-1)
			}
			datums = append(datums, d)
		}
		return datums
	}
	after := func(losses Losses, datums []rl.Datum, rate float64) [][]float32 {
		o, _ := opener(t)
		m, s := fresh(t, o), step
		s.Substeps, s.Losses, s.Datums, s.Adam.LearningRate = 1, losses, datums, rate
		var replies Replies
		for range 2 {
			submitted, err := m.Train(t.Context(), s)
			if err == nil {
				replies, err = submitted.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Adam.LearningRate = 0
		}
		return replies.Logprobs
	}
	gspo := LossesOf(ofRoles(algorithm.Loss{Name: algorithm.LossGSPO, ClipLow: new(0.8), ClipHigh: new(1.2)}))
	before := after(gspo, data(nil), 0)
	weighted := data(before)
	for i, d := range weighted {
		// Both sampled tokens count in the ratio; the prompt does not.
		ratio := math.Exp((float64(before[i][2]-d.Logprobs[2]) + float64(before[i][3]-d.Logprobs[3])) / 2)
		weighted[i].Weights = make([]float32, 4)
		for j, advantage := range d.Advantages {
			if plain := ratio * float64(advantage); plain <= min(max(ratio, 0.8), 1.2)*float64(advantage) {
				weighted[i].Weights[j] = float32(plain)
			}
		}
	}
	want := after(crossEntropy, weighted, 1e-2)
	got := after(gspo, data(before), 1e-2)
	if cmp.Equal(before, got) {
		t.Fatal("the step changed nothing")
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("log-probabilities after a step (-by the formula +by gspo):\n%s", diff)
	}
}

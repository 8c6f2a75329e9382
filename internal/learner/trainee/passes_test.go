// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

var (
	sampling = algorithm.Loss{Name: algorithm.LossImportanceSampling}
	clipped  = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
	narrow   = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.9), ClipHigh: new(1.1)}
)

// ofRoles is an algorithm with a loss and with those of roles.
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

// Two passes over parts of the data return what one pass over all of them returns: log-probs in the data's order, and a
// loss that adds up.
func TestPassesOfTwoLosses(t *testing.T) {
	one := trainRoles(t, ofRoles(sampling))
	// The ratio is not clipped within these thresholds, so that the losses are equal.
	wide := algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.0), ClipHigh: new(1e9)}
	two := trainRoles(t, ofRoles(sampling, algorithm.Role{Name: "judge", Loss: &wide}))
	if diff := cmp.Diff(one.Logprobs, two.Logprobs); diff != "" {
		t.Errorf("log-probs of two passes (-one pass +two):\n%s", diff)
	}
	if a, b := one.Metrics[lossSum], two.Metrics[lossSum]; a == 0 || a-b > 1e-4 || b-a > 1e-4 {
		t.Errorf("the loss of two passes is %v, that of one pass %v", b, a)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"math"
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestLossThatIsNotFinite(t *testing.T) {
	good := map[string]float64{"loss:sum": 1, "unclipped_grad_l2:mean": 2, "entropy": math.NaN()}
	cases := map[string]struct {
		replies []map[string]float64
		want    []problem.Code
		failed  []bool
	}{
		"finite numbers": {[]map[string]float64{good}, []problem.Code{""}, []bool{false}},
		"once": {[]map[string]float64{{"loss:sum": math.NaN()}, good},
			[]problem.Code{"", ""}, []bool{true, false}},
		"again": {[]map[string]float64{{"loss:sum": math.NaN()}, {"loss:sum": math.NaN()}},
			[]problem.Code{"", problem.Diverged}, []bool{true, true}},
		"a gradient, and again": {[]map[string]float64{{"unclipped_grad_l2:mean": math.Inf(1)},
			{"loss:sum": math.Inf(-1)}}, []problem.Code{"", problem.Diverged}, []bool{true, true}},
		"a metric of another sort": {[]map[string]float64{{"kl": math.NaN()}}, []problem.Code{""}, []bool{false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var d Detector
			for i, metrics := range tc.replies {
				err := d.CheckReplies(3, Replies{Metrics: metrics})
				if (err != nil) != tc.failed[i] || err != nil && failure.CodeOf(err) != tc.want[i] {
					t.Errorf("reply %d: %v", i, err)
				}
			}
		})
	}
}

func TestGroupsOfInvalidTokensAlone(t *testing.T) {
	batch := func(outcomes ...rl.Outcome) []rl.Group {
		groups := make([]rl.Group, len(outcomes))
		for i, outcome := range outcomes {
			groups[i].Outcome = outcome
		}
		return groups
	}
	bad := rl.InvalidTokens
	cases := map[string]struct {
		version int64
		batches [][]rl.Group
		want    bool
	}{
		"a batch of them":                    {1, [][]rl.Group{batch(bad, bad, bad, bad)}, true},
		"small batches of them":              {1, [][]rl.Group{batch(bad, bad), batch(bad, bad)}, true},
		"few of them":                        {1, [][]rl.Group{batch(bad, bad, bad)}, false},
		"a usable group among them":          {1, [][]rl.Group{batch(bad, bad, rl.Usable, bad)}, false},
		"a usable group between the batches": {1, [][]rl.Group{batch(bad, bad), batch(rl.Usable), batch(bad, bad)}, false},
		"groups that are constant":           {1, [][]rl.Group{slices.Repeat(batch(rl.Constant), 8)}, false},
		"a version that was not trained":     {0, [][]rl.Group{batch(bad, bad, bad, bad)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var d Detector
			var err error
			for _, groups := range tc.batches {
				err = d.CheckGroups(tc.version, groups)
			}
			if got := err != nil; got != tc.want {
				t.Errorf("CheckGroups = %v, want an error: %v", err, tc.want)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// episodeReward is the type of rules.
type episodeReward = playing.EpisodeReward

func TestSettle(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	three := []float64{1, -2, 4}
	cases := map[string]struct {
		rewards []float64
		rule    playing.EpisodeReward
		limited bool
		onLimit playing.LimitPolicy
		want    float64
		ok      bool
	}{
		"Sum adds":                          {rewards: three, rule: episodeReward{Reduction: "Sum"}, want: 3, ok: true},
		"Mean divides":                      {rewards: three, rule: episodeReward{Reduction: "Mean"}, want: 1, ok: true},
		"Max is the highest":                {rewards: three, rule: episodeReward{Reduction: "Max"}, want: 4, ok: true},
		"Min is the lowest":                 {rewards: three, rule: episodeReward{Reduction: "Min"}, want: -2, ok: true},
		"Last is the last":                  {rewards: three, rule: episodeReward{Reduction: "Last"}, want: 4, ok: true},
		"no reward is a fault, not 0":       {rule: episodeReward{Reduction: "Sum"}},
		"no reward stays none with a floor": {rule: episodeReward{Reduction: "Sum", Min: number(1)}},
		"min lifts": {rewards: three, rule: episodeReward{Reduction: "Min", Min: number(-1)},
			want: -1, ok: true},
		"max cuts": {rewards: three, rule: episodeReward{Reduction: "Sum", Max: number(2)},
			want: 2, ok: true},
		"nonterminal needs a limit": {rewards: three, rule: episodeReward{Reduction: "Last",
			Nonterminal: number(-1)}, want: 4, ok: true},
		"nonterminal counts at a limit": {rewards: three, rule: episodeReward{Reduction: "Last",
			Nonterminal: number(-1)}, limited: true, want: -1, ok: true},
		"nonterminal is a reward where none": {rule: episodeReward{Reduction: "Mean", Nonterminal: number(0)},
			limited: true, want: 0, ok: true},
		"a limit grades as it stands": {rewards: three, rule: episodeReward{Reduction: "Sum"}, limited: true,
			onLimit: "Grade", want: 3, ok: true},
		"a limit grades when nothing is said": {rewards: three, rule: episodeReward{Reduction: "Sum"}, limited: true,
			want: 3, ok: true},
		"Zero takes what is above 0": {rewards: three, rule: episodeReward{Reduction: "Sum"}, limited: true,
			onLimit: "Zero", want: 0, ok: true},
		"Zero leaves what is below": {rewards: three, rule: episodeReward{Reduction: "Min"}, limited: true,
			onLimit: "Zero", want: -2, ok: true},
		"Zero is 0 where no reward is": {rule: episodeReward{Reduction: "Sum"}, limited: true, onLimit: "Zero",
			want: 0, ok: true},
		"Zero says nothing without a limit": {rewards: three, rule: episodeReward{Reduction: "Sum"}, onLimit: "Zero",
			want: 3, ok: true},
		"Exclude leaves out": {rewards: three, rule: episodeReward{Reduction: "Sum"}, limited: true,
			onLimit: "Exclude"},
		"Exclude says nothing without": {rewards: three, rule: episodeReward{Reduction: "Sum"}, onLimit: "Exclude", want: 3,
			ok: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := contract.Environment{Reward: tc.rule, Limits: playing.Limits{OnLimit: tc.onLimit}}
			got, ok := rewardOf(tc.rewards, settings, tc.limited)
			if got != tc.want || ok != tc.ok {
				t.Errorf("settle = %v, %v, want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestJudgeModels(t *testing.T) {
	judged := func(judge environment.TinkerJudge) *environment.Reward {
		return &environment.Reward{RewardRule: environment.RewardRule{Rubric: &environment.Rubric{Judge: environment.Judge{
			Tinker: &judge}}}}
	}
	trained := func(rule *environment.Reward) func(*contract.RunFile) {
		return func(f *contract.RunFile) { f.Fixed.Environments[0].Definition.Reward = rule }
	}
	beside := func(model environment.FrozenModel) func(*contract.RunFile) {
		return func(f *contract.RunFile) {
			f.Fixed.Environments[0].Definition.Interaction = &environment.Interaction{Agent: &environment.Agent{
				Command: []string{"a"}, Frozen: []environment.FrozenModel{model}}}
		}
	}
	cases := map[string]struct {
		change func(*contract.RunFile)
		// says is a part of the message; if it is empty, the run is accepted.
		says string
	}{
		"a judge that the endpoint knows": {change: trained(judged(environment.TinkerJudge{Model: "j"}))},
		"a judge that the endpoint does not know": {
			change: trained(judged(environment.TinkerJudge{Model: "x"})),
			says:   "environments[e]: the endpoint does not know the model x",
		},
		"an unknown judge of a part of a sum": {
			change: trained(&environment.Reward{Weighted: []environment.WeightedReward{{Name: "a",
				RewardRule: judged(environment.TinkerJudge{Model: "x"}).RewardRule}}}),
			says: "rubric.judge.tinker.model",
		},
		"an unknown judge of an evaluation": {
			change: func(f *contract.RunFile) {
				f.Evaluation.Environments[0].Definition.Reward = judged(environment.TinkerJudge{Model: "x"})
			},
			says: "evaluation.environments[e]",
		},
		"a frozen model that the endpoint knows": {change: beside(environment.FrozenModel{Name: "t", Model: "j"})},
		"a frozen model on a checkpoint": {change: beside(environment.FrozenModel{Name: "t",
			Checkpoint: "tinker://r/sampler_weights/n"})},
		"a frozen model that the endpoint does not know": {
			change: beside(environment.FrozenModel{Name: "t", Model: "x"}),
			says:   "does not know the model x, which interaction.agent.frozen[t].model",
		},
		"a judge on a checkpoint": {change: trained(
			judged(environment.TinkerJudge{Checkpoint: "tinker://r/sampler_weights/n"}))},
		"a run that has a checkpoint": {change: func(f *contract.RunFile) {
			trained(judged(environment.TinkerJudge{Model: "x"}))(f)
			f.KnownCheckpoints = []string{"c"}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{server: tinker.ServerCapabilities{SupportedModels: []tinker.SupportedModel{{ModelName: "m"},
				{ModelName: "j"}}}}
			err := check(f, tc.change).CheckModel(t.Context())
			if tc.says == "" {
				if err != nil {
					t.Errorf("CheckModel = %v", err)
				}
				return
			}
			if reasonOf(err) != problem.ModelUnknown || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("CheckModel = %v, want the reason %s and %q", err, problem.ModelUnknown, tc.says)
			}
		})
	}
}

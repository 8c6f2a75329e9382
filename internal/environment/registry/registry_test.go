// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

func arithmetic(maxOperand int) contract.Definition {
	return contract.Definition{
		Dataset: &contract.Dataset{Arithmetic: &contract.Arithmetic{MaxOperand: maxOperand}},
		Reward:  &contract.RewardRule{ExactMatch: &contract.ExactMatch{}},
	}
}

func TestBuild(t *testing.T) {
	env, err := Builder{}.Build(t.Context(), arithmetic(9))
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	got, err := env.Splits(t.Context())
	if err != nil {
		t.Fatalf("Splits: %v", err)
	}
	want := []environment.Split{{Name: "test", Tasks: 21}, {Name: "train", Tasks: 79}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Splits (-want +got):\n%s", diff)
	}
}

func TestBuildToolUse(t *testing.T) {
	definition := arithmetic(9)
	definition.Interaction = &contract.Interaction{ToolUse: &contract.ToolUse{
		SystemPrompt: "Call tools.", ParseErrors: contract.ParseErrors{MaxConsecutive: 0, Train: contract.TrainMask},
	}}
	env, err := Builder{}.Build(t.Context(), definition)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	episode, err := env.Start(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	defer episode.Close(t.Context())
	prompts, err := episode.Prompts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := prompts[0]; len(got.Tools) != 1 || got.Tools[0].Name != "calculator" || got.Messages[0].Content != "Call tools." {
		t.Errorf("the first prompt is %+v", got)
	}
	turn, err := episode.Step(t.Context(), []environment.Reply{{Malformed: "it is not JSON"}})
	if err != nil || !turn.Done || len(turn.Masked) != 1 {
		t.Errorf("a malformed reply gave %+v, %v, want the end of the episode and a masked reply", turn, err)
	}
}

func TestBuildRejectsInvalidDefinitions(t *testing.T) {
	whole := arithmetic(9)
	cases := map[string]contract.Definition{
		"nothing":                  {},
		"no data set":              {Reward: whole.Reward},
		"an empty data set":        {Dataset: &contract.Dataset{}, Reward: whole.Reward},
		"no reward":                {Dataset: whole.Dataset},
		"an empty reward":          {Dataset: whole.Dataset, Reward: &contract.RewardRule{}},
		"a maxOperand beyond 9999": arithmetic(10000),
		"a maxOperand of 0":        arithmetic(0),
		"an empty interaction":     {Dataset: whole.Dataset, Reward: whole.Reward, Interaction: &contract.Interaction{}},
	}
	for name, definition := range cases {
		t.Run(name, func(t *testing.T) {
			env, err := Builder{}.Build(t.Context(), definition)
			var wrong *DefinitionError
			if !errors.As(err, &wrong) {
				t.Errorf("Build = %v, %v, want a *DefinitionError", env, err)
			}
		})
	}
}

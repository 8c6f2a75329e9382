// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/workflow"
)

func arithmetic(maxOperand int32) contract.Definition {
	return contract.Definition{
		Dataset: &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: maxOperand}}},
		Reward:  &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
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

func TestBuildWorkflows(t *testing.T) {
	cases := map[string]struct {
		interaction settings.Interaction
		roles       []string
	}{
		"solvers and a judge": {settings.Interaction{SolverJudge: &settings.SolverJudge{Solvers: 3}},
			[]string{"solver", "solver", "solver"}},
		"self-refinement": {settings.Interaction{SelfRefine: &settings.SelfRefine{}}, []string{"draft"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			definition := arithmetic(9)
			definition.Interaction = &tc.interaction
			_, prompts := begin(t, definition)
			var roles []string
			for _, prompt := range prompts {
				roles = append(roles, prompt.Role)
			}
			if diff := cmp.Diff(tc.roles, roles); diff != "" {
				t.Errorf("the roles of the first prompts (-want +got):\n%s", diff)
			}
		})
	}
}

// begin begins the first episode of an environment, and returns its first prompts.
func begin(t *testing.T, definition contract.Definition) (environment.Episode, []environment.Prompt) {
	t.Helper()
	env, err := Builder{}.Build(t.Context(), definition)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	episode, err := env.Start(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { episode.Close(context.WithoutCancel(t.Context())) })
	prompts, err := episode.Prompts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return episode, prompts
}

func TestBuildToolUse(t *testing.T) {
	definition := arithmetic(9)
	definition.Interaction = &settings.Interaction{ToolUse: &settings.ToolUse{
		SystemPrompt: "Call tools.", ParseErrors: settings.ParseErrors{MaxConsecutive: new(int32(0)),
			Train: settings.MaskParseErrors},
	}}
	episode, prompts := begin(t, definition)
	if got := prompts[0]; len(got.Tools) != 1 || got.Tools[0].Name != "calculator" ||
		got.Messages[0].Content != "Call tools." {
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
		"an empty reward":          {Dataset: whole.Dataset, Reward: &settings.Reward{}},
		"a maxOperand beyond 9999": arithmetic(10000),
		"a maxOperand of 0":        arithmetic(0),
		"an empty interaction":     {Dataset: whole.Dataset, Reward: whole.Reward, Interaction: &settings.Interaction{}},
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

// TestBuildNamesTheField checks that errors name the field, the position and the repair of defects that only the probe
// can find.
func TestBuildNamesTheField(t *testing.T) {
	brief := settings.WeightedReward{Name: "brief", Weight: 0.1,
		RewardRule: settings.RewardRule{Expression: "size(reply.texts)"}}
	cases := map[string]struct {
		rule settings.Reward
		want []string
	}{
		"a pattern": {settings.Reward{RewardRule: settings.RewardRule{Regex: &settings.Regex{Pattern: "a(b"}}},
			[]string{"spec.reward.regex.pattern", "missing closing )", "correct it"}},
		"an expression": {settings.Reward{RewardRule: settings.RewardRule{Expression: "replyy.text"}},
			[]string{"spec.reward.expression", "line 1, column 1", "undeclared reference to 'replyy'"}},
		"an expression of a sum": {settings.Reward{Weighted: []settings.WeightedReward{brief}},
			[]string{"spec.reward.weighted[brief].expression", "line 1, column 11", "undefined field 'texts'"}},
		"a schema's type": {schemaRule(`{"type": "objekt"}`), []string{"spec.reward.jsonSchema.schema",
			"at '/type'", "must be one of", "correct it"}},
		"a schema within a schema": {schemaRule(`{"properties": {"a": {"minimum": "1"}}}`),
			[]string{"spec.reward.jsonSchema.schema", "at '/properties/a/minimum'", "number"}},
		"a schema's reference": {schemaRule(`{"$ref": "#/$defs/missing"}`), []string{"spec.reward.jsonSchema.schema",
			"missing"}},
		"a schema of another place": {schemaRule(`{"$ref": "https://example.com/schema.json"}`),
			[]string{"spec.reward.jsonSchema.schema", "its own parts"}},
		"a schema's file": {schemaRule(`{"$ref": "file:///etc/passwd"}`), []string{"spec.reward.jsonSchema.schema",
			"its own parts"}},
		"a schema's pattern": {schemaRule(`{"pattern": "a(b"}`), []string{"spec.reward.jsonSchema.schema", "/pattern"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			definition := arithmetic(9)
			definition.Reward = &tc.rule
			_, err := Builder{}.Build(t.Context(), definition)
			var wrong *DefinitionError
			if !errors.As(err, &wrong) {
				t.Fatalf("Build: err = %v, want a *DefinitionError", err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Build: err = %v, want %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("Build: err = %q has several lines", err)
			}
		})
	}
}

func schemaRule(schema string) settings.Reward {
	return settings.Reward{RewardRule: settings.RewardRule{JSONSchema: &settings.JSONSchema{
		Schema: json.RawMessage(schema)}}}
}

// TestBuildEveryReward builds and plays each reward with a data set that it suits.
func TestBuildEveryReward(t *testing.T) {
	for name, rule := range map[string]settings.RewardRule{
		"exactMatch": {ExactMatch: &settings.ExactMatch{Part: settings.PartAnswerTag,
			Normalize: []settings.Normalization{settings.NormalizeSpace}}},
		"regex":      {Regex: &settings.Regex{Pattern: `<answer>\s*(?P<answer>\d+)\s*</answer>`}},
		"jsonSchema": {JSONSchema: &settings.JSONSchema{Schema: json.RawMessage(`{"type": "object"}`)}},
		"math":       {Math: &settings.Math{}},
		"gsm8k":      {GSM8K: &settings.GSM8K{}},
		"expression": {Expression: "reply.lastNumber() == double(row.answer) ? 1.0 : 0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			definition := arithmetic(9)
			weighted := settings.WeightedReward{Name: "a", Weight: 2, RewardRule: rule}
			definition.Reward = &settings.Reward{Weighted: []settings.WeightedReward{weighted}}
			env, err := Builder{}.Build(t.Context(), definition)
			if err != nil {
				t.Fatal(err)
			}
			reply := "{}"
			if name != "jsonSchema" {
				reply = `<answer> 18 </answer> so \boxed{18}, #### 18`
			}
			episode, err := env.Start(t.Context(), environment.Task{Split: "train", Index: 78})
			if err != nil {
				t.Fatal(err)
			}
			defer episode.Close(t.Context())
			turn, err := episode.Step(t.Context(), []environment.Reply{{Message: chat.Message{Content: reply}}})
			if err != nil || turn.Rewards[0].Value != 2 || turn.Metrics["a"] != 1 || turn.Rewards[0].Parts["a"] != 2 {
				t.Errorf("Step = %+v, %v, want a reward of 2", turn, err)
			}
		})
	}
}

// TestRolesOfDefinitions checks the roles that definitions declare.
func TestRolesOfDefinitions(t *testing.T) {
	cases := map[string]struct {
		interaction *settings.Interaction
		want        []string
	}{
		"one answer": {nil, nil},
		"tool use":   {&settings.Interaction{ToolUse: &settings.ToolUse{}}, nil},
		"solver, judge": {&settings.Interaction{SolverJudge: &settings.SolverJudge{Solvers: 2}},
			[]string{workflow.RoleJudge, workflow.RoleSolver}},
		"self-refine": {&settings.Interaction{SelfRefine: &settings.SelfRefine{}},
			[]string{workflow.RoleCritique, workflow.RoleDraft, workflow.RoleRevision}},
	}
	for name, tc := range cases {
		definition := arithmetic(9)
		definition.Interaction = tc.interaction
		if diff := cmp.Diff(tc.want, definition.Roles()); diff != "" {
			t.Errorf("%s: roles (-want +got):\n%s", name, diff)
		}
	}
}

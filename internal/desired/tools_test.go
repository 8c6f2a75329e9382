// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestFileOfToolsAndFormats checks that a run file is made only if the model's format declares tools, a dialect does,
// or the environment has no tools.
func TestFileOfToolsAndFormats(t *testing.T) {
	for name, tc := range map[string]struct {
		renderer string
		declares bool
		dialect  environment.ToolDialect
		refused  bool
	}{
		"a format with tools":           {renderer: "qwen3", declares: true},
		"a format without tools":        {renderer: "role_colon", declares: true, refused: true},
		"in a dialect":                  {renderer: "role_colon", declares: true, dialect: environment.HermesJSON},
		"an environment without a tool": {renderer: "role_colon"},
	} {
		t.Run(name, func(t *testing.T) {
			pins := testPins()
			for name, pin := range pins {
				pin.DeclaresTools = tc.declares
				pin.Definition.Interaction = &environment.Interaction{ToolUse: &environment.ToolUse{Dialect: tc.dialect,
					ParseErrors: environment.ParseErrors{Train: environment.KeepParseErrors}}}
				pins[name] = pin
			}
			run := testRun(func(run *v1alpha1.TrainingRun) {
				run.Spec.Model.Name, run.Spec.Model.Renderer = "Qwen/Qwen3-8B", &v1alpha1.Renderer{Name: tc.renderer}
			})
			_, err := File(FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"})
			format, refused := errors.AsType[*SpecError](err)
			if refused != tc.refused || !refused && err != nil {
				t.Fatalf("File: %v, refused = %v is wanted", err, tc.refused)
			}
			if tc.refused && (!strings.Contains(err.Error(), "interaction.toolUse.dialect") || !strings.Contains(err.Error(),
				tc.renderer) ||
				!strings.HasPrefix(format.Evidence, "RewardEnvironment \"") || format.Code != problem.UnsupportedByFormat) {
				t.Errorf("the error names no field: %v", err)
			}
		})
	}
}

// TestToolCallsOfCode checks that a limit of tool calls that limits nothing is refused, unless the settings of the run
// are fixed.
func TestToolCallsOfCode(t *testing.T) {
	episodes := &environment.Interaction{Python: &environment.PythonEpisodes{Source: environment.Source{Code: "x"},
		Processes: 1}}
	tools := &environment.Interaction{ToolUse: &environment.ToolUse{
		ParseErrors: environment.ParseErrors{Train: environment.KeepParseErrors}}}
	for name, tc := range map[string]struct {
		interaction          *environment.Interaction
		training, evaluation int32
		fixed                bool
		want                 string
	}{
		"code without the limit":  {interaction: episodes},
		"code with it":            {interaction: episodes, training: 1, want: "environments[arithmetic].limits.toolCalls"},
		"code of an evaluation":   {interaction: episodes, evaluation: 1, want: "evaluation.environments[held-out]."},
		"tools":                   {interaction: tools, training: 1, evaluation: 1},
		"code with a step so far": {interaction: episodes, training: 1, fixed: true},
	} {
		t.Run(name, func(t *testing.T) {
			pins := testPins()
			pin := pins["arithmetic"]
			if pin.Definition.Interaction = tc.interaction; tc.interaction == episodes {
				pin.Definition.Reward = nil
			}
			pins["arithmetic"] = pin
			held := v1alpha1.EvaluationEnvironment{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "held-out"},
				InheritFrom: "arithmetic"}
			held.Limits.ToolCalls = tc.evaluation
			run := testRun(func(run *v1alpha1.TrainingRun) {
				run.Spec.Environments[0].Limits.ToolCalls = tc.training
				run.Spec.Evaluation.Environments = []v1alpha1.EvaluationEnvironment{held}
			})
			input := FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"}
			if tc.fixed {
				made, err := fixedOf(input)
				if err != nil {
					t.Fatal(err)
				}
				input.Fixed = &made
			}
			_, err := File(input)
			refused, is := errors.AsType[*SpecError](err)
			if is != (tc.want != "") || !is && err != nil {
				t.Fatalf("File: %v, want %q", err, tc.want)
			}
			if is && (refused.Code != problem.ToolCallsUnlimited || !strings.Contains(refused.Evidence, tc.want)) {
				t.Errorf("problem %+v, want %q", refused.Problem, tc.want)
			}
		})
	}
}

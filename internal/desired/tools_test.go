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

// TestFileOfToolsAndFormats makes a run file only where the model's format declares tools, or a dialect does, or the
// environment has no tools.
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

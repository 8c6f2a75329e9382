// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSuggest checks the suggestions for the API server's errors about fields that a kind lacks.
func TestSuggest(t *testing.T) {
	for path, tc := range map[string]struct{ kind, want string }{
		"spec.environments[0].groupsize":         {KindRun, "did you mean spec.environments[0].groupSize?"},
		"spec.algorithm.optimizer.learning_rate": {KindRun, "did you mean spec.algorithm.optimizer.learningRate?"},
		"spec.algorithm.learningRate":            {KindRun, "did you mean spec.algorithm.optimizer.learningRate?"},
		"spec.modell":                            {KindRun, "did you mean spec.model?"},
		"spec.model.colour":                      {KindRun, "the fields there are date, loraRank, name, "},
		"spec.nonsense":                          {KindRun, "remove it, or correct its name"},
		"spec.dataset.jsonl.configMapref":        {KindEnvironment, "did you mean spec.dataset.jsonl.configMapRef?"},
		"spec.reward.expresion":                  {KindEnvironment, "did you mean spec.reward.expression?"},
		"spec.reward.weighted[0].weigt":          {KindEnvironment, "did you mean spec.reward.weighted[0].weight?"},
	} {
		server := fmt.Errorf("strict decoding error: unknown field %q", path)
		got := Suggest(tc.kind, server)
		if !errors.Is(got, server) || !strings.Contains(got.Error(), tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.kind, path, got, tc.want)
		}
	}
	for given, want := range map[string]string{
		"grpo": "GRPO is algorithm.advantage.scale GroupStd", "importance_sampling": "did you mean ImportanceSampling?",
		"ppo": "did you mean PPO?", "dro": "",
	} {
		server := fmt.Errorf("spec.algorithm.loss.name: Unsupported value: %q: supported values: "+
			`"ImportanceSampling", "PPO", "CISPO", "GSPO"`, given)
		got := Suggest(KindRun, server)
		if added := strings.TrimPrefix(got.Error(), server.Error()); !strings.Contains(added, want) || want == "" &&
			added != "" {
			t.Errorf("%s: %q is added, want %q", given, added, want)
		}
	}
	other := errors.New("spec.algorithm.steps: Required value")
	if got := Suggest(KindRun, other); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("another error becomes %v", got)
	}
}

// TestSuggestTypes checks the suggestions for the API server's errors about values of another type. The end of these
// errors says nothing useful, and is left out.
func TestSuggestTypes(t *testing.T) {
	const unchecked = ", <nil>: Invalid value: null: some validation rules were not checked because the object was " +
		"invalid; correct the existing errors to complete validation"
	for path, tc := range map[string]struct{ is, want string }{
		"spec.algorithm.optimizer.learningRate": {"number", "write a number without quotes, such as 4.0e-5"},
		"spec.algorithm.steps":                  {"integer", "write a whole number without quotes"},
		"spec.algorithm.loss":                   {"object", "write one or more of its fields: clipHigh, clipLow, name"},
	} {
		server := fmt.Errorf(`[%[1]s: Invalid value: "string": %[1]s in body must be of type %[2]s: "string"%[3]s]`, path,
			tc.is, unchecked)
		got := Suggest(KindRun, server)
		if !errors.Is(got, server) || !strings.Contains(got.Error(), path+": "+tc.want) ||
			strings.Contains(got.Error(), "<nil>") {
			t.Errorf("%s: %v, want %q", path, got, tc.want)
		}
	}
}

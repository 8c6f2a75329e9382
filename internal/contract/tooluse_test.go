// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func toolUse() Definition {
	return Definition{
		Dataset: &Dataset{Arithmetic: &Arithmetic{MaxOperand: 9}}, Reward: &RewardRule{ExactMatch: &ExactMatch{}},
		Interaction: &Interaction{ToolUse: &ToolUse{SystemPrompt: "$(tools)", Dialect: QwenXML,
			ParseErrors: ParseErrors{MaxConsecutive: 2, Train: TrainMask}}},
	}
}

func TestToolUseRoundTrip(t *testing.T) {
	data, err := EncodeDefinition(toolUse())
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDefinition(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(toolUse(), got); diff != "" {
		t.Errorf("the definition changed on its way (-written +read):\n%s", diff)
	}
}

func TestToolUseIsValidated(t *testing.T) {
	cases := map[string]func(*Interaction){
		"interaction":    func(i *Interaction) { i.ToolUse = nil },
		"one of":         func(i *Interaction) { i.SelfRefine = &SelfRefine{} },
		"solvers":        func(i *Interaction) { *i = Interaction{SolverJudge: &SolverJudge{}} },
		"maxConsecutive": func(i *Interaction) { i.ToolUse.ParseErrors.MaxConsecutive = -1 },
		"dialect":        func(i *Interaction) { i.ToolUse.Dialect = "XML" },
		"train":          func(i *Interaction) { i.ToolUse.ParseErrors.Train = "" },
	}
	for field, change := range cases {
		definition := toolUse()
		change(definition.Interaction)
		if _, err := EncodeDefinition(definition); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("EncodeDefinition = %v, want it to name %s", err, field)
		}
	}
}

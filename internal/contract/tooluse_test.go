// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

func toolUse() Definition {
	return Definition{
		Dataset: arithmeticData(9), Reward: exactMatch(),
		Interaction: &environment.Interaction{ToolUse: &environment.ToolUse{SystemPrompt: "$(tools)",
			Dialect:     environment.QwenXML,
			ParseErrors: environment.ParseErrors{MaxConsecutive: new(int32(0)), Train: environment.MaskParseErrors}}},
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

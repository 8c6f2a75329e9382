// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// arithmeticData returns a data set of sums.
func arithmeticData(maxOperand int32) *Dataset {
	return &Dataset{Dataset: environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: maxOperand}}}
}

// exactMatch returns a reward that compares integers.
func exactMatch() *environment.Reward {
	return &environment.Reward{RewardRule: environment.RewardRule{
		ExactMatch: &environment.ExactMatch{Part: environment.PartLastInteger}}}
}

// schemaRule returns a rule with a schema.
func schemaRule(schema string) environment.RewardRule {
	return environment.RewardRule{JSONSchema: &environment.JSONSchema{Schema: json.RawMessage(schema)}}
}

// TestSchemasAreBounded checks that the size of schemas in run files is bounded, since admission does not bound it.
func TestSchemasAreBounded(t *testing.T) {
	long := schemaRule(`"` + strings.Repeat("a", 70000) + `"`)
	cases := map[string]struct {
		reward environment.Reward
		// names is a part of the problem; it is empty if the reward is valid.
		names string
	}{
		"a schema": {reward: environment.Reward{RewardRule: schemaRule("{}")}},
		"too long": {environment.Reward{RewardRule: long}, "definition.reward.jsonSchema.schema must have at most"},
		"too long in sum": {environment.Reward{Weighted: []environment.WeightedReward{{RewardRule: schemaRule("{}")},
			{RewardRule: long}}}, "definition.reward.weighted[1].jsonSchema.schema must have at most"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Definition{Dataset: arithmeticData(9), Reward: &tc.reward}.Validate()
			if (err == nil) != (tc.names == "") || err != nil && !strings.Contains(err.Error(), tc.names) {
				t.Errorf("Validate: err = %v, want %q", err, tc.names)
			}
		})
	}
}

func TestDefinitionOfSchemaRoundTrip(t *testing.T) {
	definition := Definition{Dataset: arithmeticData(99),
		Reward: &environment.Reward{RewardRule: schemaRule(`{"required":["a"],"type":"object"}`)}}
	data, err := EncodeDefinition(definition)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeDefinition(data)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := DefinitionDigest(definition)
	if after, err := DefinitionDigest(decoded); err != nil || after != before {
		t.Errorf("the digest is %s before and %s after, %v", before, after, err)
	}
}

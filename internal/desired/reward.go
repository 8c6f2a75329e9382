// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"encoding/json"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// rewardOf returns the reward of a spec as programs read it.
func rewardOf(reward environment.Reward) *contract.RewardRule {
	rule := ruleOf(reward.RewardRule)
	for _, part := range reward.Weighted {
		rule.Weighted = append(rule.Weighted, contract.WeightedReward{Name: part.Name, Weight: part.Weight,
			Rule: ruleOf(part.RewardRule)})
	}
	return &rule
}

func ruleOf(rule environment.RewardRule) contract.RewardRule {
	converted := contract.RewardRule{Expression: rule.Expression}
	if rule.ExactMatch != nil {
		converted.ExactMatch = exactMatchOf(*rule.ExactMatch)
	}
	if rule.Regex != nil {
		converted.Regex = &contract.Regex{Pattern: rule.Regex.Pattern}
	}
	if rule.JSONSchema != nil {
		converted.JSONSchema = &contract.JSONSchema{Schema: compact(rule.JSONSchema.Schema)}
	}
	if rule.Countdown != nil {
		converted.Countdown = &contract.Countdown{Strict: ptr.Deref(rule.Countdown.Strict, true)}
	}
	if rule.Math != nil {
		converted.Math = &contract.Math{}
	}
	if rule.GSM8K != nil {
		converted.GSM8K = &contract.GSM8K{Strict: rule.GSM8K.Strict}
	}
	if rule.Python != nil {
		converted.Python = pythonOf(*rule.Python)
	}
	if rule.Rubric != nil {
		converted.Rubric = rubricOf(*rule.Rubric)
	}
	return converted
}

func exactMatchOf(match environment.ExactMatch) *contract.ExactMatch {
	converted := contract.ExactMatch{}
	if match.Part != environment.PartLastInteger {
		converted.Part = contract.ExactMatchPart(match.Part)
	}
	for _, n := range match.Normalize {
		converted.Normalize = append(converted.Normalize, contract.Normalization(n))
	}
	slices.Sort(converted.Normalize)
	return &converted
}

// compact returns a schema without white space and with sorted names, so that equal schemas have equal digests. A
// schema that is not JSON stays as it is; the probe reports it.
func compact(schema []byte) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return schema
	}
	data, err := json.Marshal(value)
	if err != nil {
		return schema
	}
	return data
}

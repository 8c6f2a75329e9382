// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// newGrader builds the grader of replies. An error names the field by its path in the RewardEnvironment.
func (b Builder) newGrader(reward settings.Reward, path string, functions *functions) (verify.Grader, error) {
	if reward.None != nil {
		return verify.None{}, nil
	}
	if len(reward.Weighted) > 0 {
		return b.newWeighted(reward.Weighted, path+".weighted", functions)
	}
	return b.newLeaf(reward.RewardRule, path, functions)
}

// newLeaf builds the grader of a rule that is not a weighted sum.
func (b Builder) newLeaf(rule settings.RewardRule, path string, functions *functions) (verify.Grader, error) {
	switch {
	case rule.ExactMatch != nil:
		return verify.ExactMatch(*rule.ExactMatch), nil
	case rule.Regex != nil:
		grader, err := verify.NewRegex(rule.Regex.Pattern)
		return grader, at(path+".regex", err)
	case rule.JSONSchema != nil:
		grader, err := verify.NewJSONSchema(rule.JSONSchema.Schema)
		return grader, at(path+".jsonSchema", err)
	case rule.Countdown != nil:
		return verify.Countdown{Strict: *rule.Countdown.Strict}, nil
	case rule.RunsPrograms():
		grader, err := functions.sandbox.add(rule)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return grader, nil
	case rule.Math != nil:
		return verify.Math{}, nil
	case rule.GSM8K != nil:
		return verify.GSM8K(*rule.GSM8K), nil
	case rule.Rubric != nil:
		return b.newRubric(*rule.Rubric)
	case rule.Python != nil:
		grader, err := functions.add(*rule.Python)
		if err != nil {
			return nil, fmt.Errorf("%s.python: %w", path, err)
		}
		return grader, nil
	case rule.Expression != "":
		grader, err := verify.NewExpression(rule.Expression)
		return grader, at(path, err)
	default:
		return nil, errors.New(path + " has no member that this program knows")
	}
}

// at prefixes an error with a path. The text of the error begins with the name of a field below that path.
func at(path string, err error) error {
	if err != nil {
		return fmt.Errorf("%s.%w", path, err)
	}
	return nil
}

func (b Builder) newWeighted(definition []settings.WeightedReward, path string,
	functions *functions) (verify.Grader, error) {
	var weighted verify.Weighted
	for _, part := range definition {
		grader, err := b.newLeaf(part.RewardRule, fmt.Sprintf("%s[%s]", path, part.Name), functions)
		if err != nil {
			return nil, err
		}
		weighted = append(weighted, verify.Leaf{Name: part.Name, Weight: part.Weight, Grader: grader})
	}
	return weighted, nil
}

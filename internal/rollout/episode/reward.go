// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// reduce makes one number of an episode's rewards, which are in the order in which they were given. The episode
// is cut when a limit ended it. Without any reward ok is false: that is not a reward of 0.
func reduce(rewards []float64, rule contract.Reward, cut bool) (reward float64, ok bool) {
	if cut && rule.Nonterminal != nil {
		rewards = append(slices.Clone(rewards), *rule.Nonterminal)
	}
	if len(rewards) == 0 {
		return 0, false
	}
	reward = combine(rewards, rule.Reduction)
	if rule.Min != nil {
		reward = max(reward, *rule.Min)
	}
	if rule.Max != nil {
		reward = min(reward, *rule.Max)
	}
	return reward, true
}

func combine(rewards []float64, reduction contract.Reduction) float64 {
	switch reduction {
	case contract.ReductionMax:
		return slices.Max(rewards)
	case contract.ReductionMin:
		return slices.Min(rewards)
	case contract.ReductionLast:
		return rewards[len(rewards)-1]
	}
	sum := 0.0
	for _, r := range rewards {
		sum += r
	}
	if reduction == contract.ReductionMean {
		return sum / float64(len(rewards))
	}
	return sum
}

// rewardOf gives the reward of an episode, and whether it has one. The episode is limited when a limit ended it.
func rewardOf(rewards []float64, settings contract.Environment, limited bool) (reward float64, ok bool) {
	reward, ok = reduce(rewards, settings.Reward, limited)
	if !limited {
		return reward, ok
	}
	switch settings.Limits.OnLimit {
	case contract.OnLimitExclude:
		return 0, false
	case contract.OnLimitZero:
		return min(reward, 0), true
	default:
		return reward, ok
	}
}

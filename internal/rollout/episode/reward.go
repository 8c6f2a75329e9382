// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// reward is a reward that the environment gave.
type reward struct {
	value float64
	// conversation is the key of the conversation that earned the reward; empty means the whole episode.
	conversation string
	// round is the round of the episode after which the reward was given.
	round int
}

func values(rewards []reward) []float64 {
	numbers := make([]float64, len(rewards))
	for i, r := range rewards {
		numbers[i] = r.value
	}
	return numbers
}

// rewardsOf returns the rewards of a conversation: its own rewards and the rewards of the whole episode, in their
// order.
func rewardsOf(c *conversation, rewards []reward) []reward {
	return slices.DeleteFunc(slices.Clone(rewards), func(r reward) bool {
		return r.conversation != "" && r.conversation != c.key
	})
}

// stepRewards returns the reward of each reply of a conversation. A reward belongs to the last reply that was sampled
// before it was given, or to the first one. A reply without any has the reward 0, as it adds nothing to the reward of
// its trajectory.
func stepRewards(c *conversation, rewards []reward, settings contract.Environment, limited bool) []float64 {
	byStep := make([][]float64, len(c.replies))
	if len(byStep) == 0 {
		return nil
	}
	for _, r := range rewards {
		after := slices.IndexFunc(c.rounds, func(round int) bool { return round > r.round })
		if after < 0 {
			after = len(c.rounds)
		}
		step := max(0, after-1)
		byStep[step] = append(byStep[step], r.value)
	}
	steps := make([]float64, len(byStep))
	for i, own := range byStep {
		steps[i], _ = reduce(own, settings.Reward, limited && i == len(byStep)-1)
		if limited && settings.Limits.OnLimit == playing.LimitZero {
			steps[i] = min(steps[i], 0)
		}
	}
	return steps
}

// reduce combines an episode's rewards, in the order in which they were given, into one number. cut says that a limit
// ended the episode. ok is false if there is no reward, which is not a reward of 0.
func reduce(rewards []float64, rule playing.EpisodeReward, cut bool) (reward float64, ok bool) {
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

func combine(rewards []float64, reduction playing.Reduction) float64 {
	switch reduction {
	case playing.ReductionMax:
		return slices.Max(rewards)
	case playing.ReductionMin:
		return slices.Min(rewards)
	case playing.ReductionLast:
		return rewards[len(rewards)-1]
	}
	sum := 0.0
	for _, r := range rewards {
		sum += r
	}
	if reduction == playing.ReductionMean {
		return sum / float64(len(rewards))
	}
	return sum
}

// rewardOf returns the reward of an episode, and whether it has one. limited says that a limit ended the episode.
func rewardOf(rewards []float64, settings contract.Environment, limited bool) (reward float64, ok bool) {
	reward, ok = reduce(rewards, settings.Reward, limited)
	if !limited {
		return reward, ok
	}
	switch settings.Limits.OnLimit {
	case playing.LimitExclude:
		return 0, false
	case playing.LimitZero:
		return min(reward, 0), true
	default:
		return reward, ok
	}
}

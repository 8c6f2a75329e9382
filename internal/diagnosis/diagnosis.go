// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis says why a policy does not learn, from the figures of its steps. Each cause has one rule, which
// docs/observing.md describes. A rule is a pure function: the operator, kubectl tinker and tests apply the same
// rules.
package diagnosis

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/history"
)

// Cause is why a policy does not learn.
type Cause string

// The causes, those that explain others first.
const (
	// EpisodesFault: episodes of an environment end with faults.
	EpisodesFault Cause = "EpisodesFault"
	// RewardFell: the mean reward is far below an earlier one.
	RewardFell Cause = "RewardFell"
	// RepliesCut: sampling.maxTokens ends most replies.
	RepliesCut Cause = "RepliesCut"
	// CallsMalformed: the format cannot parse the tool calls of many replies.
	CallsMalformed Cause = "CallsMalformed"
	// NoGradient: all groups have equal rewards.
	NoGradient Cause = "NoGradient"
	// EntropyCollapsed: the policy always replies the same, and wrongly.
	EntropyCollapsed Cause = "EntropyCollapsed"
	// SamplerDiffers: sampler and trainer disagree on log-probabilities.
	SamplerDiffers Cause = "SamplerDiffers"
	// GradientClipped: optimizer.gradClipNorm scales each gradient down by far.
	GradientClipped Cause = "GradientClipped"
	// OptionsIgnored: agents ask for something that the gateway does not have.
	OptionsIgnored Cause = "OptionsIgnored"
	// RewardUnchanged: the mean reward has no trend.
	RewardUnchanged Cause = "RewardUnchanged"
	// HeldOutFalls: an evaluation falls while the reward of training does not.
	HeldOutFalls Cause = "HeldOutFalls"
)

// Thresholds of the rules. test/survival fixes them on one half of its runs and checks them on the other.
const (
	// window is how many of the newest steps a rule looks at.
	window = 10
	// fewest is how many steps a rule needs at least.
	fewest = 5
	// trend is how many steps a rule about a trend needs at least.
	trend = 20
	// faulty is the threshold of the share of episodes with faults.
	faulty = 0.05
	// cut is the threshold of the share of replies that end at maxTokens.
	cut = 0.5
	// malformed is the threshold of the share of episodes that end with a reply that cannot be parsed.
	malformed = 0.2
	// collapsed is the entropy in nats below which a policy explores nothing.
	collapsed = 0.01
	// differs is the threshold of the divergence of sampler and trainer, in nats.
	differs = 0.1
	// clipped is the threshold of the ratio of the norm of the gradient to gradClipNorm.
	clipped = 10
	// solved is the share of groups without a wrong reply at which a policy has learnt its tasks.
	solved = 0.5
)

// Settings are the settings of a run that rules compare figures with.
type Settings struct {
	// GradClipNorm is algorithm.optimizer.gradClipNorm; 0 means no clipping.
	GradClipNorm float64
}

// Finding is a cause with its figures.
type Finding struct {
	Cause Cause
	// Message has the figures, in a sentence.
	Message string
}

// rule is the rule of a cause.
type rule struct {
	cause Cause
	// holds returns the sentence with the figures, or "".
	holds  func(series, Settings) string
	repair string
}

// rules are the rules in the order in which findings are reported.
var rules = []rule{
	{EpisodesFault, episodesFault, "Read the newest fault of the environment in the evidence of kubectl tinker why " +
		"RUN, and " +
		"correct the environment, its reward or the row that the reward cannot grade."},
	{RewardFell, rewardFell, "Lower algorithm.optimizer.learningRate, and continue from the best checkpoint: " +
		"kubectl tinker fork RUN."},
	{RepliesCut, repliesCut, "Raise sampling.maxTokens, or ask for shorter replies in the prompt. Read the replies: " +
		"kubectl tinker transcripts RUN."},
	{CallsMalformed, callsMalformed,
		"Compare model.renderer with the format that the model was trained on, and read the " +
			"replies: kubectl tinker transcripts RUN."},
	{NoGradient, noGradient, "Choose tasks that the policy sometimes solves, raise groupSize, or grade in parts so that " +
		"the rewards of a group differ. Check the reward on right and wrong replies: kubectl tinker try."},
	{EntropyCollapsed, entropyCollapsed,
		"Lower algorithm.optimizer.learningRate, or add algorithm.kl, and begin from an " +
			"earlier checkpoint."},
	{SamplerDiffers, samplerDiffers, "Lower algorithm.lag, and check that the endpoint samples with the weights and the " +
		"precision that it trains."},
	{GradientClipped, gradientClipped, "Raise algorithm.optimizer.gradClipNorm, or lower the learning rate instead."},
	{HeldOutFalls, heldOutFalls, "Use the best checkpoint (kubectl tinker checkpoints RUN), more tasks, or fewer epochs."},
	{OptionsIgnored, optionsIgnored, "Take the options out of the agent, or set interaction.agent.unsupported to " +
		"Refuse, " +
		"so that the agent has an error."},
	{RewardUnchanged, rewardUnchanged,
		"Raise algorithm.optimizer.learningRate, groupSize or tasksPerStep, and check the " +
			"reward on right and wrong replies: kubectl tinker try."},
}

// Causes returns the causes in the order in which findings are reported.
func Causes() []Cause {
	causes := make([]Cause, len(rules))
	for i, r := range rules {
		causes[i] = r.cause
	}
	return causes
}

// RepairOf returns what to try against a cause, where RUN stands for the name of the run. It is empty for a cause that
// this version does not know.
func RepairOf(cause Cause) string {
	for _, r := range rules {
		if r.cause == cause {
			return r.repair
		}
	}
	return ""
}

// Of returns the causes that the rows of a run show. The rows are in the order of their steps.
func Of(rows []history.Row, settings Settings) []Finding {
	var found []Finding
	s := seriesOf(rows)
	for _, r := range rules {
		if message := r.holds(s, settings); message != "" {
			found = append(found, Finding{Cause: r.cause, Message: message})
		}
	}
	return found
}

// percent prints a share.
func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

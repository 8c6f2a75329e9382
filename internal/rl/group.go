// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"bytes"
	"cmp"
)

// Kind is the purpose of a group.
type Kind uint8

// Train groups become gradients; Evaluate groups become metrics.
const (
	Train Kind = iota
	Evaluate
)

// Key names a group: its task and its policy.
type Key struct {
	Kind Kind
	// Slot in the run's stream; the index within the evaluation for Evaluate.
	Slot int64
	// Lineage of the policy that samples.
	Lineage Lineage
	// Evaluation digests the settings of an evaluation; empty for Train.
	Evaluation string
}

// Compare orders training before evaluation, and then by slot.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Slot, other.Slot),
		cmp.Compare(k.Evaluation, other.Evaluation),
		bytes.Compare(k.Lineage[:], other.Lineage[:]),
	)
}

// Outcome of a group or of a member.
type Outcome uint8

// The outcomes. All but Usable make a group a tombstone: it is left out, and counted.
const (
	Usable Outcome = iota
	BelowFloor
	Constant
	EnvironmentFault
	JudgeFault
	Deadline
	InvalidTokens
	// The rows of a supervised run have the outcomes below besides Usable and InvalidTokens.
	NoWeight
	NotRendered
	TooLong
	Empty
	// Filtered rows are records of episodes that a filter leaves out.
	Filtered
)

// Group is the episodes of one task under one policy.
type Group struct {
	Key     Key
	Outcome Outcome
	// Reason tells people why the group is left out or, for a usable group, why the first of its unusable members is
	// left out. No digest includes it.
	Reason      string
	Environment string
	Members     []Member
	// PromptTokens and SampledTokens count all tokens that were paid for, including faulted members and retries.
	PromptTokens, SampledTokens int64
	// Judge counts the requests and tokens of judges for the group.
	Judge JudgeUsage
}

// JudgeUsage counts calls of judges, failed calls, replies that were no judgements, and the tokens of judges, which
// are not part of the policy's tokens.
type JudgeUsage struct {
	Calls, Errors, Unreadable, PromptTokens, SampledTokens int64
}

// Member is one episode of a group.
type Member struct {
	Index   int
	Outcome Outcome
	// Reward of the whole episode, which is measured. Training uses the rewards of Trajectories.
	Reward float64
	// Parts of the reward by name.
	Parts map[string]float64
	// StopReason of the episode: the end of the last reply (stop, length, malformed), finished if a tool's result ended
	// the episode, or the limit that ended it.
	StopReason string
	// Metrics that the environment gave: correct, answered, truncated, ...
	Metrics map[string]float64
	// Trajectories of the episode's conversations, in the order of their keys. A usable member has at least one, other
	// members have none.
	Trajectories []Trajectory
	Turns        int
	// PromptTokens sums the full prompt of each turn; SampledTokens the replies.
	PromptTokens, SampledTokens int64
	// Retries is the number of tries before this outcome, all of which ended in a fault.
	Retries int
	// Transcript is for people: package transcript encodes it, and no digest includes it. It is nil unless the lease asked
	// for it.
	Transcript []byte
}

// MaxTranscript bounds the transcripts of a group's members together, in bytes.
const MaxTranscript = 2 << 20

// Trajectory is the record of one conversation of an episode. It gets an advantage of its own.
type Trajectory struct {
	// Role that the policy has in the conversation; "" is the one role of a simple environment.
	Role string
	// Key of the conversation, which distinguishes it from the others of its episode.
	Key    string
	Reward float64
	// StepRewards has the reward of each reply, in their order. It is nil unless the run compares single steps.
	StepRewards []float64
	// StopReason of the last reply, or the reason for which the conversation ended otherwise, as in Member.
	StopReason string
	// Segments to train on; a trajectory whose replies are all masked has none.
	Segments []Segment
	// Judgements of its replies, for people: no digest includes them.
	Judgements []Judgement
}

// Judgement is a judge's rating of one criterion, from 0 to 1. Texts are cut to MaxJudgementText bytes.
type Judgement struct {
	Criterion, Rationale string
	Rating               float64
}

// MaxJudgements bounds the judgements of a trajectory, and MaxJudgementText each of their texts, in bytes.
const (
	MaxJudgements    = 64
	MaxJudgementText = 1024
)

// Segment is one sequence that goes through the model as a whole: the prompts and replies of turns that each extend the
// turn before. All slices but Steps have the length of Tokens.
type Segment struct {
	// Turn of the trajectory that the segment begins with.
	Turn   int
	Tokens []int32
	// Actions marks the tokens that the policy sampled.
	Actions []bool
	// Logprobs under the sampling policy; 0 if the token is not an action.
	Logprobs []float32
	// ReferenceLogprobs is nil if there is no KL penalty.
	ReferenceLogprobs []float32
	// TeacherLogprobs is nil if there is no teacher; 0 if the token is not an action.
	TeacherLogprobs []float32
	// Weights of the loss cross_entropy, by target; nil if the policy sampled the tokens.
	Weights []float32
	// Steps are the replies that the segment contains, in their order. It is nil if the trajectory has no StepRewards.
	Steps []Step
}

// Step is one reply of a trajectory.
type Step struct {
	// Index of the reply in the trajectory.
	Index int
	// End of the reply in the segment: the index of the token after its last one.
	End int
}

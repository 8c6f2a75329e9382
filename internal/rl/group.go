// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"bytes"
	"cmp"
)

// Kind is what a group is played for.
type Kind uint8

// Train groups become gradients; Evaluate groups become metrics.
const (
	Train Kind = iota
	Evaluate
)

// Key names a group: what is played, and under which policy.
type Key struct {
	Kind Kind
	// Slot in the run's stream; the index within the evaluation for Evaluate.
	Slot int64
	// Lineage of the policy that samples.
	Lineage Lineage
	// Evaluation digests what is evaluated and how; empty for Train.
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
)

// Group is the episodes of one task under one policy.
type Group struct {
	Key     Key
	Outcome Outcome
	// Reason is for readers of logs, and empty for a usable group.
	Reason      string
	Environment string
	Members     []Member
	// PromptTokens and SampledTokens count what was paid for, faulted members and retries included.
	PromptTokens, SampledTokens int64
}

// Member is one episode of a group.
type Member struct {
	Index   int
	Outcome Outcome
	Reward  float64
	// Parts of the reward by name.
	Parts map[string]float64
	// StopReason of the last turn: stop, length, or the limit that ended the episode.
	StopReason string
	// Metrics that the environment gave: correct, answered, truncated, ...
	Metrics  map[string]float64
	Segments []Segment
	Turns    int
	// PromptTokens sums the full prompt of each turn; SampledTokens the replies.
	PromptTokens, SampledTokens int64
	// Retries of faults before this outcome.
	Retries int
}

// Segment is one sequence that goes through the model as a whole: the prompts and replies of turns of
// which each extends the one before. All slices have the length of Tokens.
type Segment struct {
	Role string
	// Turn that the segment begins with.
	Turn   int
	Tokens []int32
	// Actions marks the tokens that the policy sampled.
	Actions []bool
	// Logprobs under the sampling policy; 0 where the token is no action.
	Logprobs []float32
	// ReferenceLogprobs is nil without a KL penalty.
	ReferenceLogprobs []float32
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"fmt"
	"slices"
)

// Transition is one turn of a trajectory: the whole prompt and the reply to it.
type Transition struct {
	// Turn is the index of the reply in the trajectory.
	Turn int
	// Observation is the whole prompt of the turn, in tokens.
	Observation []int32
	// Action is the reply as it was sampled, and Logprobs has the log-probabilities of its tokens.
	Action   []int32
	Logprobs []float32
}

// SegmentBuilder merges the turns of one trajectory into segments: a turn whose observation begins with all tokens of
// the last segment extends it, any other begins a new one. Tokens are compared, not messages, since text that is
// rendered again may differ from the sampled tokens. The tokens of a segment are stored once, with nothing beside them
// but the log-probs of its replies, since a worker has many long trajectories at the same time. The zero value has no
// turn.
type SegmentBuilder struct{ segments []openSegment }

// openSegment is a segment that may be extended.
type openSegment struct {
	turn    int
	tokens  []int32
	replies []sampledReply
}

// sampledReply is a reply that a segment has from begin to the end of its step.
type sampledReply struct {
	begin    int
	step     Step
	logprobs []float32
	// isMasked keeps the reply out of the loss.
	isMasked bool
}

// Share replaces the stored tokens with the beginning of the next turn's observation, if both have the same tokens,
// so that the tokens are in memory only once while the reply is sampled. The caller must not change the observation
// afterwards.
func (b *SegmentBuilder) Share(observation []int32) {
	if last := b.last(); last != nil && hasPrefix(observation, last.tokens) {
		last.tokens = observation[:len(last.tokens):len(last.tokens)]
	}
}

// Append adds the next turn, and returns its observation in the slice that stores it from now on. It fails if a reply
// does not have one log-prob for each token, or if the prompt is empty.
func (b *SegmentBuilder) Append(t Transition) (observation []int32, err error) {
	if len(t.Action) != len(t.Logprobs) {
		return nil, fmt.Errorf("merging turn %d: %d log-probs for %d tokens", t.Turn, len(t.Logprobs), len(t.Action))
	}
	if len(t.Observation) == 0 {
		return nil, fmt.Errorf("merging turn %d: the prompt is empty", t.Turn)
	}
	last := b.last()
	if last == nil || !hasPrefix(t.Observation, last.tokens) {
		b.segments = append(b.segments, openSegment{turn: t.Turn})
		last = b.last()
	}
	last.tokens = slices.Concat(t.Observation, t.Action)
	last.replies = append(last.replies, sampledReply{
		begin: len(t.Observation), step: Step{Index: t.Turn, End: len(last.tokens)}, logprobs: t.Logprobs,
	})
	return last.tokens[:len(t.Observation):len(t.Observation)], nil
}

// MaskLast keeps the last reply, if there is one, out of the loss.
func (b *SegmentBuilder) MaskLast() {
	if last := b.last(); last != nil {
		last.replies[len(last.replies)-1].isMasked = true
	}
}

// Segments returns the segments that have a token to train on.
func (b *SegmentBuilder) Segments() []Segment {
	var segments []Segment
	for _, open := range b.segments {
		s := Segment{
			Turn: open.turn, Tokens: open.tokens,
			Actions: make([]bool, len(open.tokens)), Logprobs: make([]float32, len(open.tokens)),
		}
		for _, reply := range open.replies {
			s.Steps = append(s.Steps, reply.step)
			if reply.isMasked {
				continue
			}
			copy(s.Logprobs[reply.begin:], reply.logprobs)
			for i := reply.begin; i < reply.step.End; i++ {
				s.Actions[i] = true
			}
		}
		if slices.Contains(s.Actions, true) {
			segments = append(segments, s)
		}
	}
	return segments
}

func (b *SegmentBuilder) last() *openSegment {
	if len(b.segments) == 0 {
		return nil
	}
	return &b.segments[len(b.segments)-1]
}

func hasPrefix(tokens, prefix []int32) bool {
	return len(tokens) >= len(prefix) && slices.Equal(tokens[:len(prefix)], prefix)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// transcript returns the transcript of the episode, or nil if the spec does not ask for one. reason says why the
// episode is not usable.
func (e *episode) transcript(reason string) []byte {
	if !e.spec.Transcript {
		return nil
	}
	parts := make([]transcript.Part, 0, len(e.order))
	for _, c := range e.order {
		parts = append(parts, transcript.Part{Role: c.role, Key: c.key, StopReason: c.stop, PrefixBroken: c.broken,
			Recorder: c.recorder})
	}
	parts = append(parts, e.frozenParts()...)
	return transcript.Encode(reason, parts, rl.MaxTranscript/max(1, e.spec.GroupSize))
}

// recordResults records the answers of the environment to the last replies: results of tools with their rewards, or
// rewards of the replies themselves. A reward without a conversation is recorded if the episode has only one
// conversation. done says that the environment ended the episode with these answers.
func (e *episode) recordResults(turn environment.Turn, done bool) {
	for _, prompt := range e.pending {
		c := e.conversation(prompt)
		if c.recorder == nil || len(c.replies) == 0 {
			continue
		}
		if len(turn.Results) > 0 {
			results := make([]transcript.Result, len(turn.Results))
			for i, result := range turn.Results {
				results[i] = transcript.Result(result)
			}
			c.recorder.Results(results, done)
			continue
		}
		var reward *float64
		for _, r := range turn.Rewards {
			if r.Conversation == c.key || r.Conversation == "" && len(e.order) == 1 {
				reward = new(r.Value + deref(reward))
			}
		}
		c.recorder.Reward(reward, done)
	}
}

func deref(number *float64) float64 {
	if number == nil {
		return 0
	}
	return *number
}

// messageOf returns the text of an error, which may be nil.
func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

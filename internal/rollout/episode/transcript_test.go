// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

func TestTranscriptHasPromptsAndReplies(t *testing.T) {
	spec := alone(nil)
	plain := play(t, multiTurn(2, keep), says("hi"), spec)
	spec.Transcript = true
	group := play(t, multiTurn(2, keep), says("hi"), spec)
	if plain.Digest() != group.Digest() {
		t.Error("the transcript changes the digest of the group")
	}
	if plain.Members[0].Transcript != nil {
		t.Error("a transcript is recorded without having been asked for")
	}
	episode := transcript.FromGroup(group).Episodes[0]
	var roles []string
	for _, m := range episode.Conversations[0].Messages {
		roles = append(roles, m.Role)
		if m.Role == "assistant" && (m.Text != "hi" || m.Reply == 0) {
			t.Errorf("a reply is recorded as %+v", m)
		}
		if m.NewPrompt {
			t.Errorf("a prompt that extends the one before is recorded as a new one: %+v", m)
		}
	}
	if diff := cmp.Diff([]string{"user", "assistant", "user", "assistant"}, roles); diff != "" {
		t.Errorf("roles of messages (-want +got):\n%s", diff)
	}
	if episode.StopReason != "stop" || episode.Conversations[0].Reward == nil {
		t.Errorf("the episode is %+v", episode)
	}
}

func TestTranscriptOfFaultHasItsReason(t *testing.T) {
	spec := alone(nil)
	spec.Transcript = true
	env := multiTurn(1, keep)
	env.step = func(int, []environment.Reply) (environment.Turn, error) {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: errors.New("the grader broke")}
	}
	episode := transcript.FromGroup(play(t, env, says("hi"), spec)).Episodes[0]
	if episode.Outcome != "EnvironmentFault" || episode.Reason == "" || len(episode.Conversations) != 1 {
		t.Errorf("the episode is %+v, want its fault and its conversation", episode)
	}
}

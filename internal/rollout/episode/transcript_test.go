// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

func TestTranscriptHasPromptsAndReplies(t *testing.T) {
	spec := singleMember(nil)
	plain := play(t, multiTurn(2, keep), says("hi"), spec)
	spec.Transcript = true
	group := play(t, multiTurn(2, keep), says("hi"), spec)
	if plain.Digest() != group.Digest() {
		t.Errorf("the transcript changes the digest of the group: got %v, want %v", plain.Digest(), group.Digest())
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
	spec := singleMember(nil)
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

// TestTranscriptHasResultsOfTools plays episodes on a server, and checks that results of tools are recorded with their
// rewards even if no prompt contains them.
func TestTranscriptHasResultsOfTools(t *testing.T) {
	look, submit := callOf("look", "{}"), callOf("submit", `{"answer": "3"}`)
	looked := transcript.Message{Role: "tool", Name: "look", Text: "They are 1 and 2."}
	submitted := transcript.Message{Role: "tool", Name: "submit", Text: "Thank you.", Reward: new(1.0), Finished: true}
	for name, tc := range map[string]struct {
		options ors.Options
		replies []string
		change  func(*contract.Environment)
		want    []transcript.Message
	}{
		"the environment ends it": {replies: []string{look, submit}, want: []transcript.Message{looked, submitted}},
		"a limit ends it": {
			replies: []string{look, look}, want: []transcript.Message{looked, looked},
			change: func(e *contract.Environment) { e.Limits.Turns, e.Reward.Nonterminal = 2, new(0.0) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, _, _ := playOnServer(t, newToolServer(), tc.options, tc.replies, tc.change)
				episode := transcript.FromGroup(rl.Group{Members: []rl.Member{m}}).Episodes[0]
				var got []transcript.Message
				for _, message := range episode.Conversations[0].Messages {
					if message.Role == "tool" {
						got = append(got, message)
					} else if message.Finished || message.Reward != nil {
						t.Errorf("the message %+v has a reward or ends the episode", message)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("results of tools (-want +got):\n%s", diff)
				}
			})
		})
	}
}

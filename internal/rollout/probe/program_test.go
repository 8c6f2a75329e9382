// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// programs is an environment whose episodes make requests until the policy says stop.
type programs struct{ environment.Unasked }

func (programs) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "train", Tasks: 1}}, nil
}

func (p programs) Start(context.Context, environment.Task) (environment.Episode, error) {
	return p, nil
}

func (programs) Examples(context.Context, environment.Task) ([]string, error) {
	return []string{"stop", ""}, nil
}

func (programs) Close(context.Context) {}

func (programs) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	prompt := environment.Prompt{Messages: []chat.Message{{Role: chat.RoleUser, Content: "Go on?"}},
		Tools: []chat.Tool{{Name: "add"}}}
	for n := 1; ; n++ {
		reply, err := policy.Chat(ctx, prompt)
		if err != nil {
			return environment.Turn{}, err
		}
		if reply.Message.Content == "stop" {
			return environment.Turn{Done: true, Rewards: []environment.Reward{{Value: float64(n)}}}, nil
		}
	}
}

// asking is an environment whose episodes are played by a function.
type asking struct {
	programs
	run func(ctx context.Context, policy environment.Policy) (environment.Turn, error)
}

func (a asking) Start(context.Context, environment.Task) (environment.Episode, error) { return a, nil }

func (a asking) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	return a.run(ctx, policy)
}

// TestProbeFindsConversationsThatAreFaults plays programs whose episodes no run could use.
func TestProbeFindsConversationsThatAreFaults(t *testing.T) {
	roles := func(first, second string) func(context.Context, environment.Policy) (environment.Turn, error) {
		return func(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
			_, err := policy.Chat(ctx, environment.Prompt{Role: "solver", Conversation: first})
			if err == nil {
				_, err = policy.Chat(ctx, environment.Prompt{Role: "checker", Conversation: second})
			}
			return environment.Turn{Done: true, Rewards: []environment.Reward{{Value: 1}, {Value: 1, Conversation: "a"}}}, err
		}
	}
	cases := map[string]struct {
		env  asking
		want string
	}{
		"two roles of one key": {asking{run: roles("a", "a")},
			`the environment asks for the role "checker" in the conversation "a", which is that of "solver": give each role a key`},
		"two roles without keys": {asking{run: roles("", "")},
			`the environment asks for the role "checker" in the conversation "", which is that of "solver": give each role a key`},
		"a reward of no conversation": {asking{run: roles("solver", "checker")},
			`the environment rewards the conversation "a", which it never asked for: its conversations are "checker", "solver"`},
		"two conversations": {asking{run: roles("a", "b")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _ := probe(t.Context(), &environment.Calls{}, tc.env)
			if got.OK != (tc.want == "") || !strings.Contains(got.Message, tc.want) {
				t.Errorf("probe = %+v, want the message %q", got, tc.want)
			}
		})
	}
}

// TestProbeOfPrograms plays programs with a policy that always says the same. A program that never stops making
// requests is not a failure.
func TestProbeOfPrograms(t *testing.T) {
	got, _ := probe(t.Context(), &environment.Calls{}, programs{})
	if !got.OK || got.CanaryReward == nil || *got.CanaryReward != 1 || !got.DeclaresTools ||
		got.Deterministic == nil || !*got.Deterministic {
		t.Errorf("probe = %+v, want a deterministic reward of 1 and tools", got)
	}
}

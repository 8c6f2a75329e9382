// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// programs is an environment whose episodes ask until the policy says stop.
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

// TestProbeOfPrograms plays programs with a policy that says one text. One that asks without an end is no failure.
func TestProbeOfPrograms(t *testing.T) {
	got, _ := probe(t.Context(), &environment.Calls{}, programs{})
	if !got.OK || got.CanaryReward == nil || *got.CanaryReward != 1 || !got.DeclaresTools ||
		got.Deterministic == nil || !*got.Deterministic {
		t.Errorf("probe = %+v, want a deterministic reward of 1 and tools", got)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package singleturn

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

func newEnvironment(t *testing.T) *Environment {
	t.Helper()
	rows, err := dataset.NewArithmetic(99)
	if err != nil {
		t.Fatal(err)
	}
	return New(rows, verify.ExactMatch{})
}

func start(t *testing.T, env *Environment, task environment.Task) environment.Episode {
	t.Helper()
	episode, err := env.Start(t.Context(), task)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { episode.Close(context.Background()) })
	return episode
}

func TestEpisode(t *testing.T) {
	env := newEnvironment(t)
	task := environment.Task{Split: "train", Index: 7993}
	right, wrong, err := env.Answers(t.Context(), task)
	if err != nil {
		t.Fatalf("Answers: %v", err)
	}
	for reply, reward := range map[string]float64{right: 1, wrong: 0, "no idea": 0} {
		episode := start(t, env, task)
		prompts, err := episode.Prompts(t.Context())
		want := []environment.Prompt{{Messages: []chat.Message{{Role: "user", Content: "What is 99 + 99?"}}}}
		if diff := cmp.Diff(want, prompts); diff != "" || err != nil {
			t.Fatalf("Prompts: err %v (-want +got):\n%s", err, diff)
		}
		turn, err := episode.Step(t.Context(), []environment.Reply{{Message: chat.Message{Role: "assistant",
			Content: reply}}})
		if err != nil {
			t.Fatalf("Step: %v", err)
		}
		if diff := cmp.Diff([]environment.Reward{{Value: reward}}, turn.Rewards); diff != "" || !turn.Done ||
			len(turn.Prompts) > 0 {
			t.Errorf("Step(%q) = %+v, want done with reward %v", reply, turn, reward)
		}
	}
}

func TestStepRequiresOneReply(t *testing.T) {
	episode := start(t, newEnvironment(t), environment.Task{Split: "test"})
	_, err := episode.Step(t.Context(), nil)
	var fault *environment.Fault
	if !errors.As(err, &fault) || !fault.Permanent {
		t.Errorf("Step without replies: err = %v, want a permanent fault", err)
	}
}

func TestFinishGivesNoReward(t *testing.T) {
	turn, err := start(t, newEnvironment(t), environment.Task{Split: "test"}).Finish(t.Context())
	if diff := cmp.Diff(environment.Turn{Done: true}, turn); diff != "" || err != nil {
		t.Errorf("Finish: err %v (-want +got):\n%s", err, diff)
	}
}

func TestUnknownTask(t *testing.T) {
	env := newEnvironment(t)
	task := environment.Task{Split: "validation"}
	_, startErr := env.Start(t.Context(), task)
	_, _, answersErr := env.Answers(t.Context(), task)
	for name, err := range map[string]error{"Start": startErr, "Answers": answersErr} {
		if fault := environment.AsFault(err); err == nil || !fault.Permanent || fault.Kind != environment.EnvironmentFault {
			t.Errorf("%s: err = %v, want a permanent fault of the environment", name, err)
		}
	}
}

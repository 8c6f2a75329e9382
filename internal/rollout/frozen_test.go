// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// beside is an environment whose agent asks a model beside the policy.
type beside struct {
	environment.Unasked
	model environment.FrozenModel
	said  chan environment.Completed
}

func (*beside) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "train", Tasks: 100}}, nil
}

func (b *beside) Start(context.Context, environment.Task) (environment.Episode, error) { return b, nil }
func (*beside) Close(context.Context)                                                  {}

func (b *beside) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	p := policy.(environment.AgentPolicy)
	asked := environment.Completion{Messages: []chat.Message{{Role: chat.RoleUser, Content: "1+1="}}, MaxTokens: 8}
	_, err := p.Complete(ctx, asked)
	asked.FrozenName, asked.Frozen, asked.Logprobs = "teacher", b.model, true
	out, frozenErr := p.Complete(ctx, asked)
	if err := errors.Join(err, frozenErr); err != nil {
		return environment.Turn{}, err
	}
	b.said <- out
	return environment.Turn{Done: true, Rewards: []environment.Reward{{Value: float64(len(out.Tokens) % 3)}}}, nil
}

// Build implements Builder.
func (b *beside) Build(context.Context, contract.Definition) (environment.Environment, error) {
	return b, nil
}

// startBeside starts a worker whose agents ask a model beside the policy.
func startBeside(place *learnerService, sim *simulator, worker string, definition settings.FrozenModel) (*beside,
	*Judges, *running) {
	judges := &Judges{
		Renderer: func(context.Context, string, string) (renderer.Renderer, error) {
			return families.ForModel(model)
		},
		BaseModel: func(context.Context, string) (string, error) { return model, nil },
	}
	env := &beside{said: make(chan environment.Completed, 100), model: judges.Frozen(definition)}
	return env, judges, place.start(worker, sim.client, func(config *Config) {
		config.Judges, config.Environments = judges, env
	})
}

// TestFrozenModelsAreTheSame plays the same group at two workers, with agents that also ask a base model, and checks
// that the replies are the same and count as replies of a judge.
func TestFrozenModelsAreTheSame(t *testing.T) {
	sim := newSimulator(t)
	key := slots(1)[0]
	var digests []rl.Digest
	for _, worker := range []string{"worker-0", "worker-1"} {
		place, b := newLearnerService(t), sim.board(key)
		place.serve(b, 1)
		env, _, r := startBeside(place, sim, worker, settings.FrozenModel{Name: "teacher", Model: model,
			Sampling: settings.JudgeSampling{Temperature: new(1.0), MaxTokens: 100}})
		arrive(t, b, key)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		group, _ := b.group(key)
		members := int64(len(group.Members))
		if group.Judge.Calls != members || group.Judge.SampledTokens < members || group.Judge.SampledTokens > 8*members ||
			group.Outcome == rl.EnvironmentFault {
			t.Errorf("the group is %v (%s), with the judge's usage %+v of %d members", group.Outcome, group.Reason, group.Judge,
				members)
		}
		digests = append(digests, group.Digest())
		out := <-env.said
		if len(out.Tokens) == 0 || len(out.Texts) != len(out.Tokens) || len(out.Logprobs) != len(out.Tokens) ||
			out.PromptTokens == 0 {
			t.Errorf("the agent was given %+v", out)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("the groups of two workers differ: got %v, want %v", digests[0], digests[1])
	}
}

// TestUnknownFrozenModelIsReported checks that a run waits for a checkpoint that the endpoint does not have, and that
// the worker reports why.
func TestUnknownFrozenModelIsReported(t *testing.T) {
	sim := newSimulator(t)
	place, b := newLearnerService(t), sim.board(slots(1)...)
	place.serve(b, 1)
	_, judges, r := startBeside(place, sim, "worker-0", settings.FrozenModel{Name: "teacher",
		Checkpoint: "tinker://missing/sampler_weights/v0",
		Sampling:   settings.JudgeSampling{Temperature: new(1.0), MaxTokens: 100}})
	eventually(t, "the model is reported", func() bool {
		return strings.Contains(judges.reported().Evidence, "interaction.agent.frozen[teacher]")
	})
	if _, ok := b.group(slots(1)[0]); ok {
		t.Error("the group was finished without the model")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestContextLength(t *testing.T) {
	const context = 1000
	training := func(maxTokens int, limits playing.Limits) func(*contract.RunFile) {
		return func(f *contract.RunFile) {
			env := &f.Fixed.Environments[0]
			env.Sampling.MaxTokens, env.Limits = int32(maxTokens), limits
		}
	}
	cases := map[string]struct {
		change func(*contract.RunFile)
		// unknown means that the endpoint does not announce the context.
		unknown bool
		// says are parts of the message. If it is empty, the run is accepted.
		says []string
	}{
		"a reply that leaves room for a prompt": {change: training(999, playing.Limits{})},
		"a reply that fills the context": {change: training(1000, playing.Limits{}),
			says: []string{"environments[e].sampling.maxTokens is 1000", "set it to at most 999",
				"limits.trajectoryTokens to at most 1000"}},
		"a prompt and a reply that fit": {change: training(400, playing.Limits{PromptTokens: 600})},
		"a prompt and a reply that do not fit": {change: training(401, playing.Limits{PromptTokens: 600}),
			says: []string{"environments[e].limits.promptTokens 600", "sampling.maxTokens 401", "1001",
				"the context of m has 1000", "lower one of them", "limits.trajectoryTokens to at most 1000"}},
		"a trajectory that fits": {change: training(401,
			playing.Limits{PromptTokens: 600, TrajectoryTokens: 1000})},
		"a trajectory that does not fit": {change: training(401,
			playing.Limits{PromptTokens: 600, TrajectoryTokens: 1001}), says: []string{"limits.promptTokens 600"}},
		"a long trajectory whose first reply fits": {change: training(400,
			playing.Limits{PromptTokens: 600, TrajectoryTokens: 5000})},
		"a context that is not known": {change: training(5000, playing.Limits{}), unknown: true},
		"a run that has a checkpoint": {change: func(f *contract.RunFile) {
			training(5000, playing.Limits{})(f)
			f.KnownCheckpoints = []string{"c"}
		}},
		"an evaluation whose reply does not fit": {change: func(
			f *contract.RunFile) {
			f.Evaluation.Environments[0].Sampling.MaxTokens = 4096
		}, says: []string{"evaluation.environments[e].sampling.maxTokens is 4096"}},
		"a run that only evaluates and does not fit": {change: func(f *contract.RunFile) {
			f.Fixed.Algorithm, f.Fixed.Environments, f.Evaluation.Environments[0].Sampling.MaxTokens = nil, nil, 1000
		}, says: []string{"evaluation.environments[e]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			served := tinker.SupportedModel{ModelName: "m", MaxContextLength: context}
			if tc.unknown {
				served.MaxContextLength = 0
			}
			f := &fake{server: tinker.ServerCapabilities{SupportedModels: []tinker.SupportedModel{served}}}
			err := check(f, tc.change).CheckModel(t.Context())
			if len(tc.says) == 0 {
				if err != nil {
					t.Errorf("CheckModel = %v", err)
				}
				return
			}
			if reasonOf(err) != problem.ContextTooShort {
				t.Fatalf("CheckModel = %v, want the reason %s", err, problem.ContextTooShort)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message lacks %q: %s", part, err)
				}
			}
		})
	}
}

const (
	ofM     = "tinker://r/sampler_weights/m"
	ofShort = "tinker://r/sampler_weights/short"
	ofLong  = "tinker://r/sampler_weights/long"
	ofOther = "tinker://r/sampler_weights/other"
)

// TestContextOfTeachers refuses runs whose teacher may have to read more than its own context has.
func TestContextOfTeachers(t *testing.T) {
	for name, tc := range map[string]struct {
		teacher algorithm.Teacher
		limits  playing.Limits
		known   []string
		// says are parts of the message. If it is empty, the run is accepted.
		says []string
	}{
		"a trajectory that fits": {teacher: algorithm.Teacher{Model: "short"}, limits: playing.Limits{TrajectoryTokens: 499}},
		"a trajectory that does not fit": {teacher: algorithm.Teacher{Model: "short"},
			limits: playing.Limits{TrajectoryTokens: 500},
			says: []string{"environments[e].teacher may have to read 500 tokens", "the context of short has 500",
				"limits.trajectoryTokens to at most 499"}},
		"a system prompt that does not fit": {teacher: algorithm.Teacher{Model: "short", SystemPrompt: "be good"},
			limits: playing.Limits{TrajectoryTokens: 499}, says: []string{"7 of teacher.systemPrompt", "at most 492"}},
		"a system prompt that fits": {teacher: algorithm.Teacher{Model: "short", SystemPrompt: "be good"},
			limits: playing.Limits{TrajectoryTokens: 492}},
		"a first reply that does not fit": {teacher: algorithm.Teacher{Model: "short"},
			limits: playing.Limits{PromptTokens: 600},
			says:   []string{"limits.promptTokens and sampling.maxTokens to at most 499 together, or choose another teacher"}},
		"a checkpoint of the run's model": {teacher: algorithm.Teacher{Checkpoint: ofM},
			limits: playing.Limits{TrajectoryTokens: 999}},
		"a checkpoint with a system prompt": {teacher: algorithm.Teacher{Checkpoint: ofM, SystemPrompt: "be good"},
			limits: playing.Limits{TrajectoryTokens: 999},
			says:   []string{"the context of m, of which the checkpoint is, has 1000", "shorten teacher.systemPrompt"}},
		"a system prompt longer than the context": {
			teacher: algorithm.Teacher{Model: "short", SystemPrompt: strings.Repeat("be good ", 100)},
			limits:  playing.Limits{TrajectoryTokens: 10},
			says:    []string{"this endpoint: shorten teacher.systemPrompt, or choose"}},
		"a checkpoint of a model with a shorter context": {teacher: algorithm.Teacher{Checkpoint: ofShort},
			limits: playing.Limits{TrajectoryTokens: 500}, says: []string{"environments[e].teacher may have to read 500 tokens",
				"the context of short, of which the checkpoint is, has 500", "limits.trajectoryTokens to at most 499"}},
		"a checkpoint of a model with a longer context": {teacher: algorithm.Teacher{Checkpoint: ofLong},
			limits: playing.Limits{TrajectoryTokens: 1500, PromptTokens: 10}},
		"a checkpoint of a model that the endpoint does not list": {teacher: algorithm.Teacher{Checkpoint: ofOther},
			limits: playing.Limits{TrajectoryTokens: 1500, PromptTokens: 10}},
		"a checkpoint that does not exist": {teacher: algorithm.Teacher{Checkpoint: "tinker://r/sampler_weights/none"},
			limits: playing.Limits{TrajectoryTokens: 1500, PromptTokens: 10}},
		"a checkpoint at an endpoint that does not tell of which model it is": {
			teacher: algorithm.Teacher{Checkpoint: "tinker://r/sampler_weights/silent"},
			limits:  playing.Limits{TrajectoryTokens: 1000, PromptTokens: 10}, says: []string{"the context of m, of which"}},
		"a model that the endpoint does not list": {teacher: algorithm.Teacher{Model: "other"},
			limits: playing.Limits{TrajectoryTokens: 900}},
		"a run that has a checkpoint": {teacher: algorithm.Teacher{Model: "short"},
			limits: playing.Limits{TrajectoryTokens: 900}, known: []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{server: tinker.ServerCapabilities{SupportedModels: []tinker.SupportedModel{
				{ModelName: "m", MaxContextLength: 1000}, {ModelName: "short", MaxContextLength: 500},
				{ModelName: "long", MaxContextLength: 2000},
			}}, bases: map[string]string{ofM: "m", ofShort: "short", ofLong: "long", ofOther: "other"}}
			c := check(f, func(file *contract.RunFile) {
				env := &file.Fixed.Environments[0]
				env.Teacher, env.Limits, file.KnownCheckpoints = &tc.teacher, tc.limits, tc.known
			})
			c.CountSystem = func(_ context.Context, text string) (int, error) { return len(text), nil }
			err := c.CheckModel(t.Context())
			if len(tc.says) == 0 && err == nil {
				return
			}
			if len(tc.says) == 0 || reasonOf(err) != problem.ContextTooShort {
				t.Fatalf("CheckModel = %v", err)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message lacks %q: %s", part, err)
				}
			}
		})
	}
}

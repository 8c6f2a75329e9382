// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe checks an environment before anything is trained on it: that it can be built, has tasks, plays an
// episode, and distinguishes a right answer from a wrong one if it knows them. It needs no model.
package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
)

// Reasons of a result that is not OK.
const (
	ReasonInvalid          = "Invalid"
	ReasonEnvironmentFault = "EnvironmentFault"
	ReasonJudgeFault       = "JudgeFault"
	ReasonNoTasks          = "NoTasks"
	ReasonCanaryFailed     = "CanaryFailed"
)

// unknownAnswer is the reply to a task whose answer is not known.
const unknownAnswer = "I do not know."

// closeTimeout bounds the end of an episode.
const closeTimeout = 30 * time.Second

// canaryError reports that an environment does not reward as it should.
type canaryError struct{ problem string }

// Error implements error.
func (e *canaryError) Error() string { return e.problem }

// Probe builds the environment and checks it. The result has what is wrong; final is set when
// it will be wrong next time, too, as far as is known.
func Probe(ctx context.Context, builder registry.Builder, definition contract.Definition) (result contract.ProbeResult, final bool) {
	env, err := builder.Build(ctx, definition)
	var invalid *registry.DefinitionError
	switch {
	case errors.As(err, &invalid):
		return contract.ProbeResult{Reason: ReasonInvalid, Message: err.Error()}, true
	case err != nil:
		return failed(contract.ProbeResult{}, err)
	}
	return probe(ctx, env)
}

func probe(ctx context.Context, env environment.Environment) (result contract.ProbeResult, final bool) {
	splits, err := env.Splits(ctx)
	if err != nil {
		return failed(contract.ProbeResult{}, err)
	}
	var first string
	for _, split := range splits {
		result.Splits = append(result.Splits, contract.ProbeSplit{Name: split.Name, Tasks: split.Tasks})
		if first == "" && split.Tasks > 0 {
			first = split.Name
		}
	}
	if first == "" {
		result.Reason, result.Message = ReasonNoTasks, "no split of the environment has a task"
		return result, true
	}
	reward, err := canary(ctx, env, environment.Task{Split: first})
	if err != nil {
		return failed(result, err)
	}
	result.OK, result.CanaryReward = true, reward
	return result, false
}

// failed adds to the result what went wrong.
func failed(result contract.ProbeResult, err error) (contract.ProbeResult, bool) {
	result.Message = err.Error()
	var wrong *canaryError
	if errors.As(err, &wrong) {
		result.Reason = ReasonCanaryFailed
		return result, true
	}
	fault := environment.AsFault(err)
	result.Reason = ReasonEnvironmentFault
	if fault.Kind == environment.JudgeFault {
		result.Reason = ReasonJudgeFault
	}
	return result, fault.Permanent
}

// canary plays the task twice, with a right and with a wrong answer, and returns the reward of the right one. An
// environment that does not know its answers plays the task once, and has no reward to return. An error is a
// *canaryError, a *environment.Fault or the context's.
func canary(ctx context.Context, env environment.Environment, task environment.Task) (*float64, error) {
	right, wrong, err := answers(ctx, env, task)
	if errors.Is(err, environment.ErrNoAnswers) {
		if _, err := play(ctx, env, task, unknownAnswer); err != nil {
			return nil, fmt.Errorf("playing an episode: %w", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for answers: %w", err)
	}
	best, err := playAnswer(ctx, env, task, right)
	if err != nil {
		return nil, fmt.Errorf("playing the right answer: %w", err)
	}
	worst, err := playAnswer(ctx, env, task, wrong)
	if err != nil {
		return nil, fmt.Errorf("playing a wrong answer: %w", err)
	}
	if best <= worst {
		return nil, &canaryError{problem: fmt.Sprintf("a right answer earns %v and a wrong one %v", best, worst)}
	}
	return &best, nil
}

func answers(ctx context.Context, env environment.Environment, task environment.Task) (right, wrong string, err error) {
	if answerer, ok := env.(environment.Answerer); ok {
		return answerer.Answers(ctx, task)
	}
	return "", "", environment.ErrNoAnswers
}

// playAnswer plays the task with an answer, which must end the episode, and returns the sum of rewards.
func playAnswer(ctx context.Context, env environment.Environment, task environment.Task, text string) (float64, error) {
	turn, err := play(ctx, env, task, text)
	if err != nil {
		return 0, err
	}
	if !turn.Done {
		return 0, &canaryError{problem: "the environment continues after its answer"}
	}
	sum := 0.0
	for _, reward := range turn.Rewards {
		sum += reward.Value
	}
	return sum, nil
}

// play answers the first prompt of every conversation.
func play(ctx context.Context, env environment.Environment, task environment.Task, text string) (environment.Turn, error) {
	episode, err := env.Start(ctx, task)
	if err != nil {
		return environment.Turn{}, err
	}
	defer func() {
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer stop()
		episode.Close(closing)
	}()
	prompts, err := episode.Prompts(ctx)
	if err != nil {
		return environment.Turn{}, err
	}
	replies := make([]environment.Reply, len(prompts))
	for i, prompt := range prompts {
		replies[i] = environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation,
			Message: chat.Message{Role: "assistant", Content: text}}
	}
	return episode.Step(ctx, replies)
}

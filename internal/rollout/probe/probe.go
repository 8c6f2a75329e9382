// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe checks an environment before anything is trained on it: that it can be built, has tasks, plays an
// episode, and distinguishes a right answer from a wrong one if it knows them. It needs no model.
package probe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// unknownAnswer is the reply to a task whose answer is not known.
const unknownAnswer = "I do not know."

// closeTimeout bounds the end of an episode.
const closeTimeout = 30 * time.Second

// canaryError reports that an environment does not reward as it should.
type canaryError struct{ problem string }

// Error implements error.
func (e *canaryError) Error() string { return e.problem }

// Probe builds the environment and checks it. The result has the problem; final is set if another probe is expected
// to find the same problem.
func Probe(ctx context.Context, builder registry.Builder,
	definition contract.Definition) (result contract.ProbeResult, final bool) {
	builder.CheckRows = true
	var rows dataset.Dataset
	if open := builder.Data; open != nil {
		builder.Data = func(ctx context.Context, definition contract.Dataset) (dataset.Dataset, error) {
			opened, err := open(ctx, definition)
			rows = opened
			return opened, err
		}
	}
	calls := &environment.Calls{Logger: builder.Logger}
	env, err := environment.Call(ctx, calls, "building the environment",
		func(ctx context.Context) (environment.Environment, error) {
			return builder.Build(ctx, definition)
		})
	var invalid *registry.DefinitionError
	switch {
	case errors.As(err, &invalid):
		return contract.ProbeResult{Reason: problem.Invalid, Message: err.Error()}, true
	case err != nil:
		return failed(contract.ProbeResult{}, err)
	}
	result, final = probe(ctx, calls, env)
	if result.OK && rows != nil {
		result.Message = warnOfIDs(ctx, rows)
	}
	return result, final
}

// warnOfIDs returns a warning about ids that are not unique. It is empty if all ids are unique, or if a row cannot be
// read: an episode that needs the row reports that.
func warnOfIDs(ctx context.Context, rows dataset.Dataset) string {
	found, err := dataset.FindDuplicates(ctx, rows)
	if err != nil || found == nil {
		return ""
	}
	return found.String() + ": both are used, since tasks are told apart by their place; remove rows that the data have " +
		"twice by mistake, or name another column with dataset.fields.id"
}

// probe checks an environment that was built. A panic is a fault of the environment, and a call that ignores the end of
// ctx is given up.
func probe(ctx context.Context, calls *environment.Calls,
	env environment.Environment) (result contract.ProbeResult, final bool) {
	splits, err := environment.Call(ctx, calls, "listing the splits", env.Splits)
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
		result.Reason, result.Message = problem.NoTasks, "no split of the environment has a task"
		return result, true
	}
	c := &canary{env: env, calls: calls, task: environment.Task{Split: first}}
	reward, err := c.reward(ctx)
	if err != nil {
		return failed(result, err)
	}
	result.OK, result.CanaryReward, result.DeclaresTools, result.Deterministic = true, reward, c.tools, c.deterministic
	return result, false
}

// canary plays a task without a model.
type canary struct {
	env   environment.Environment
	calls *environment.Calls
	task  environment.Task
	// tools is set once a prompt has tools.
	tools bool
	// deterministic says whether one reply earned the same twice; nil if no reply was played twice.
	deterministic *bool
}

// failed adds a failure to the result.
func failed(result contract.ProbeResult, err error) (contract.ProbeResult, bool) {
	result.Message = err.Error()
	if _, ok := errors.AsType[*canaryError](err); ok {
		result.Reason = problem.CanaryFailed
		return result, true
	}
	var data *source.Error
	var row *verify.RowError
	if errors.As(err, &data) || errors.As(err, &row) {
		result.Reason = transport.Refine(problem.DataInvalid, err)
		return result, true
	}
	fault := environment.AsFault(err)
	result.Reason = problem.EnvironmentFault
	if fault.Kind == environment.JudgeFault {
		result.Reason = problem.JudgeFault
	}
	result.Reason = transport.Refine(result.Reason, err)
	return result, fault.Permanent
}

// reward plays the task twice, with a right and with a wrong answer, and returns the reward of the right one. An
// environment that does not know its answers plays the task once, and has no reward to return. An error is a
// *canaryError, a *environment.Fault or the context's. Examples of an environment are played as they are, the first of
// them twice: their right rewards are not known.
func (c *canary) reward(ctx context.Context) (*float64, error) {
	right, wrong, err := c.answers(ctx)
	if exampler, ok := c.env.(environment.Exampler); ok && errors.Is(err, environment.ErrNoAnswers) {
		return c.examples(ctx, exampler)
	}
	if errors.Is(err, environment.ErrNoAnswers) {
		if _, err := c.play(ctx, unknownAnswer, 1); err != nil {
			return nil, fmt.Errorf("playing an episode: %w", err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for answers: %w", err)
	}
	best, err := c.answer(ctx, right)
	if err != nil {
		return nil, fmt.Errorf("playing the right answer: %w", err)
	}
	worst, err := c.answer(ctx, wrong)
	if err != nil {
		return nil, fmt.Errorf("playing a wrong answer: %w", err)
	}
	if best <= worst {
		return nil, &canaryError{problem: fmt.Sprintf("a right answer earns %v and a wrong one %v", best, worst)}
	}
	return &best, nil
}

// described names a reply of an example.
func described(text string) string {
	if text == "" {
		return "an empty reply, which a policy may write and which must earn a reward"
	}
	return fmt.Sprintf("the reply %q", text)
}

// examples plays the examples of an environment, and returns the reward of the first one.
func (c *canary) examples(ctx context.Context, exampler environment.Exampler) (*float64, error) {
	texts, err := environment.Call(ctx, c.calls, "Examples of the environment",
		func(ctx context.Context) ([]string, error) { return exampler.Examples(ctx, c.task) })
	if err != nil {
		return nil, fmt.Errorf("asking for examples: %w", err)
	}
	all := make([][]environment.Turn, 0, len(texts)+1)
	for _, text := range append(texts[:1:1], texts...) {
		turns, err := c.play(ctx, text, maxRounds)
		if err != nil {
			return nil, fmt.Errorf("playing %s: %w", described(text), err)
		}
		all = append(all, turns)
	}
	first, second := all[0], all[1]
	sum := sumOf(first)
	if first[len(first)-1].Ungraded != nil {
		if first, err = c.group(ctx, all[1:]); err == nil {
			second, err = c.group(ctx, all[1:])
		}
		if err != nil {
			return nil, fmt.Errorf("scoring a group of the replies %q: %w", texts, err)
		}
		sum = sumOf(first[:1])
	}
	c.deterministic = new(reflect.DeepEqual(rewardsOf(first), rewardsOf(second)))
	return &sum, nil
}

// group scores together the replies that ended episodes.
func (c *canary) group(ctx context.Context, episodes [][]environment.Turn) ([]environment.Turn, error) {
	grader, ok := c.env.(environment.GroupGrader)
	if !ok {
		return nil, &environment.Fault{Permanent: true, Err: errors.New("the environment does not score its episodes")}
	}
	var replies []environment.Reply
	for _, turns := range episodes {
		if reply := turns[len(turns)-1].Ungraded; reply != nil {
			replies = append(replies, *reply)
		}
	}
	return environment.Call(ctx, c.calls, "GradeGroup of the environment",
		func(ctx context.Context) ([]environment.Turn, error) { return grader.GradeGroup(ctx, c.task, replies) })
}

// rewardsOf returns the rewards of turns, in their order.
func rewardsOf(turns []environment.Turn) []any {
	var all []any
	for _, turn := range turns {
		all = append(all, turn.Rewards, turn.Metrics)
	}
	return all
}

func sumOf(turns []environment.Turn) float64 {
	sum := 0.0
	for _, turn := range turns {
		for _, reward := range turn.Rewards {
			sum += reward.Value
		}
	}
	return sum
}

func (c *canary) answers(ctx context.Context) (right, wrong string, err error) {
	answerer, ok := c.env.(environment.Answerer)
	if !ok {
		return "", "", environment.ErrNoAnswers
	}
	both, err := environment.Call(ctx, c.calls, "Answers of the environment",
		func(ctx context.Context) ([2]string, error) {
			right, wrong, err := answerer.Answers(ctx, c.task)
			return [2]string{right, wrong}, err
		})
	return both[0], both[1], err
}

// maxRounds is how often an environment may ask before it has to end an episode in which every reply is the same
// text.
const maxRounds = 8

// answer plays the task with an answer in place of every reply, which must end the episode, and returns the sum of
// rewards.
func (c *canary) answer(ctx context.Context, text string) (float64, error) {
	turns, err := c.play(ctx, text, maxRounds)
	if err != nil {
		return 0, err
	}
	if !turns[len(turns)-1].Done {
		return 0, &canaryError{problem: "the environment continues after its answer"}
	}
	return sumOf(turns), nil
}

// play replies to the prompts with the text, round after round, until the episode ends or there were enough rounds.
func (c *canary) play(ctx context.Context, text string, rounds int) ([]environment.Turn, error) {
	episode, err := environment.Call(ctx, c.calls, "Start of the environment",
		func(ctx context.Context) (environment.Episode, error) {
			return c.env.Start(ctx, c.task)
		})
	if err != nil {
		return nil, err
	}
	defer c.close(ctx, episode)
	if program, ok := episode.(environment.Program); ok {
		return c.run(ctx, program, text)
	}
	prompts, err := environment.Call(ctx, c.calls, "Prompts of the environment", episode.Prompts)
	if err != nil {
		return nil, err
	}
	var turns []environment.Turn
	for range rounds {
		c.tools = c.tools || slices.ContainsFunc(prompts, func(p environment.Prompt) bool { return len(p.Tools) > 0 })
		turn, err := environment.Call(ctx, c.calls, "Step of the environment", func(ctx context.Context) (environment.Turn,
			error) {
			return episode.Step(ctx, repliesTo(prompts, text))
		})
		if err != nil {
			return nil, err
		}
		turns = append(turns, turn)
		if prompts = turn.Prompts; turn.Done || len(prompts) == 0 {
			break
		}
	}
	return turns, nil
}

// close ends an episode, also when ctx has ended.
func (c *canary) close(ctx context.Context, episode environment.Episode) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	// An error is in the log.
	_, _ = environment.Call(ctx, c.calls, "Close of the environment", func(ctx context.Context) (struct{}, error) {
		episode.Close(ctx)
		return struct{}{}, nil
	})
}

// repliesTo replies to each prompt with the text.
func repliesTo(prompts []environment.Prompt, text string) []environment.Reply {
	replies := make([]environment.Reply, len(prompts))
	for i, prompt := range prompts {
		replies[i] = environment.Reply{Role: prompt.Role, Conversation: prompt.Conversation,
			Message: chat.Message{Role: "assistant", Content: text}}
	}
	return replies
}

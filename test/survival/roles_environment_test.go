// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// rolesBuilder builds environments of two roles: two solvers answer a question of arithmetic, a judge chooses one of
// the answers and, if that is wrong, the first solver tries once more.
type rolesBuilder struct {
	// judging is called before each judge is asked; it may be nil.
	judging func()
}

// Build implements rollout.Builder.
func (b rolesBuilder) Build(_ context.Context, definition contract.Definition) (environment.Environment, error) {
	rows, err := dataset.NewArithmetic(int(definition.Dataset.Arithmetic.MaxOperand))
	return &rolesEnvironment{Dataset: rows, judging: b.judging}, err
}

// rolesEnvironment has the tasks of a data set.
type rolesEnvironment struct {
	dataset.Dataset
	judging func()
}

// Start implements environment.Environment.
func (e *rolesEnvironment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	row, err := e.Row(ctx, task.Split, task.Index)
	return &rolesEpisode{row: row, seed: task.Seed, judging: e.judging}, err
}

type rolesEpisode struct {
	row     dataset.Row
	seed    uint64
	judging func()
	answers []environment.Reply
}

// Prompts implements environment.Episode.
func (e *rolesEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	return []environment.Prompt{
		{Role: "solver", Conversation: "solver 1", Messages: e.row.Messages}, {Role: "solver", Conversation: "solver 2",
			Messages: e.row.Messages},
	}, nil
}

// Step implements environment.Episode.
func (e *rolesEpisode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	switch {
	case e.answers == nil:
		return e.solved(ctx, replies)
	case replies[0].Role == "judge":
		return e.judged(ctx, replies[0])
	default:
		reward, _, err := e.grade(ctx, replies[0])
		return environment.Turn{Rewards: []environment.Reward{reward}, Done: true}, err
	}
}

// solved rewards the solvers and asks the judge. One of four episodes has a fault instead.
func (e *rolesEpisode) solved(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if e.seed%4 == 0 {
		return environment.Turn{}, errors.New("the environment has a fault")
	}
	e.answers = replies
	turn := environment.Turn{Metrics: map[string]float64{"correct": 0}}
	for _, reply := range replies {
		reward, right, err := e.grade(ctx, reply)
		if err != nil {
			return environment.Turn{}, err
		}
		if right {
			turn.Metrics["correct"] = 1
		}
		turn.Rewards = append(turn.Rewards, reward)
	}
	if e.judging != nil {
		e.judging()
	}
	question := fmt.Sprintf("%s 1: %s 2: %s", e.row.Messages[0].Content, replies[0].Message.Content,
		replies[1].Message.Content)
	turn.Prompts = []environment.Prompt{{Role: "judge", Conversation: "judge",
		Messages: []chat.Message{{Role: "user", Content: question}}}}
	return turn, nil
}

// judged rewards the judge for the answer that it chose, and the whole episode if the answer is right.
func (e *rolesEpisode) judged(ctx context.Context, reply environment.Reply) (environment.Turn, error) {
	chosen := e.answers[0]
	if strings.Contains(reply.Message.Content, "2") {
		chosen = e.answers[1]
	}
	_, right, err := e.grade(ctx, chosen)
	if err != nil {
		return environment.Turn{}, err
	}
	reward := environment.Reward{Conversation: "judge", Value: style(reply)}
	if right {
		reward.Value++
		return environment.Turn{Rewards: []environment.Reward{reward, {Value: 0.125}}, Done: true}, nil
	}
	again := append([]chat.Message{}, e.row.Messages...)
	again = append(again, e.answers[0].Message, chat.Message{Role: "user", Content: "Try again."})
	return environment.Turn{
		Rewards: []environment.Reward{reward},
		Prompts: []environment.Prompt{{Role: "solver", Conversation: "solver 1", Messages: again}},
	}, nil
}

// grade rewards a right answer, and adds a little for style.
func (e *rolesEpisode) grade(ctx context.Context,
	reply environment.Reply) (reward environment.Reward, right bool, err error) {
	score, err := verify.ExactMatch{}.Grade(ctx, e.row, reply)
	return environment.Reward{Conversation: reply.Conversation, Value: score.Reward + style(reply)}, score.Reward > 0, err
}

// style is 0, 1/4 or 1/2, so that few groups are constant.
func style(reply environment.Reply) float64 { return float64(len(reply.Message.Content)%3) / 4 }

// Finish implements environment.Episode.
func (e *rolesEpisode) Finish(context.Context) (environment.Turn, error) {
	return environment.Turn{Rewards: []environment.Reward{{Value: 0}}, Done: true}, nil
}

// Close implements environment.Episode.
func (e *rolesEpisode) Close(context.Context) {}

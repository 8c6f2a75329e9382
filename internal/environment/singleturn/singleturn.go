// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package singleturn is the environment of one question and one answer: the question is a row of a data set, and a
// verifier scores the policy's reply. It is a function of the task alone.
package singleturn

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// Environment consists of a data set and a verifier.
type Environment struct {
	rows     dataset.Dataset
	verifier verify.Verifier
}

// New returns the environment of the rows and the verifier.
func New(rows dataset.Dataset, verifier verify.Verifier) *Environment {
	return &Environment{rows: rows, verifier: verifier}
}

// Splits implements environment.Environment.
func (e *Environment) Splits(context.Context) ([]environment.Split, error) {
	return e.rows.Splits(), nil
}

// Start implements environment.Environment. An unknown row is a permanent fault.
func (e *Environment) Start(_ context.Context, task environment.Task) (environment.Episode, error) {
	row, err := e.row(task)
	if err != nil {
		return nil, err
	}
	return &episode{row: row, verifier: e.verifier}, nil
}

// Answers implements environment.Answerer.
func (e *Environment) Answers(_ context.Context, task environment.Task) (right, wrong string, err error) {
	row, err := e.row(task)
	if err != nil {
		return "", "", err
	}
	return row.Answer, e.verifier.Wrong(row.Answer), nil
}

func (e *Environment) row(task environment.Task) (dataset.Row, error) {
	row, err := e.rows.Row(task.Split, task.Index)
	if err != nil {
		return dataset.Row{}, &environment.Fault{Permanent: true, Err: err}
	}
	return row, nil
}

type episode struct {
	row      dataset.Row
	verifier verify.Verifier
}

// Prompts implements environment.Episode.
func (e *episode) Prompts(context.Context) ([]environment.Prompt, error) {
	return []environment.Prompt{{Messages: []chat.Message{{Role: "user", Content: e.row.Prompt}}}}, nil
}

// Step implements environment.Episode. The first reply ends the episode.
func (e *episode) Step(_ context.Context, replies []environment.Reply) (environment.Turn, error) {
	if len(replies) != 1 {
		err := fmt.Errorf("one reply was asked for, %d were given", len(replies))
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: err}
	}
	score := e.verifier.Verify(e.row.Answer, replies[0])
	return environment.Turn{
		Rewards: []environment.Reward{{Value: score.Reward}},
		Metrics: score.Metrics,
		Done:    true,
	}, nil
}

// Finish implements environment.Episode. Without a reply there is no reward.
func (e *episode) Finish(context.Context) (environment.Turn, error) {
	return environment.Turn{Done: true}, nil
}

// Close implements environment.Episode.
func (e *episode) Close(context.Context) {}

var (
	_ environment.Environment = (*Environment)(nil)
	_ environment.Answerer    = (*Environment)(nil)
	_ environment.Episode     = (*episode)(nil)
)

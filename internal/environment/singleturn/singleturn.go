// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package singleturn is the environment of one question and one answer: the question is a row of a data set, and a
// grader scores the policy's reply.
package singleturn

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// Environment consists of a data set and a grader.
type Environment struct{ verify.Tasks }

// New returns the environment of the rows and the grader.
func New(rows dataset.Dataset, grader verify.Grader) *Environment {
	return &Environment{verify.Tasks{Rows: rows, Grader: grader}}
}

// Start implements environment.Environment. An unknown row is a permanent fault.
func (e *Environment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	row, err := e.Row(ctx, task)
	if err != nil {
		return nil, err
	}
	return &episode{row: row, grader: e.Grader}, nil
}

type episode struct {
	row    dataset.Row
	grader verify.Grader
}

// Prompts implements environment.Episode.
func (e *episode) Prompts(context.Context) ([]environment.Prompt, error) {
	return []environment.Prompt{{Messages: e.row.Messages}}, nil
}

// Step implements environment.Episode. The first reply ends the episode.
func (e *episode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	if len(replies) != 1 {
		err := fmt.Errorf("one reply was asked for, %d were given", len(replies))
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: err}
	}
	score, err := e.grader.Grade(ctx, e.row, replies[0])
	return verify.Turn(score, err, replies[0])
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify scores replies by rules. It asks no model and no server, so the score of a reply is always the same.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// Score is the reward of a reply with its metrics.
type Score struct {
	Reward float64
	// Parts are the parts of Reward by name, for metrics.
	Parts map[string]float64
	// Metrics are averaged over episodes, by name.
	Metrics map[string]float64
}

// Outcome returns the reward of an episode's last turn.
func (s Score) Outcome() []environment.Reward {
	return []environment.Reward{{Value: s.Reward, Parts: s.Parts}}
}

// Grader scores replies. It is safe for concurrent use.
type Grader interface {
	// Grade scores the reply to the prompt of a row. An error is a *environment.Fault, or the context's; a reply that is
	// merely wrong is not an error.
	Grade(ctx context.Context, row dataset.Row, reply environment.Reply) (Score, error)
}

// ErrTogether is the cause of the *environment.Fault of a Grader that scores the replies of a group together.
var ErrTogether = errors.New("the replies of a group are scored together")

// Turn returns the last turn of an episode that a reply has ended. The score and the error are the results of
// Grader.Grade.
func Turn(score Score, err error, reply environment.Reply) (environment.Turn, error) {
	if errors.Is(err, ErrTogether) {
		return environment.Turn{Ungraded: &reply, Done: true}, nil
	}
	if err != nil {
		return environment.Turn{}, err
	}
	return environment.Turn{Rewards: score.Outcome(), Metrics: score.Metrics, Done: true}, nil
}

// Answerer is a Grader that knows replies to the rows, so that an environment can be checked without a model.
type Answerer interface {
	// Answers returns the text of a reply that earns the most on the row, and of one that must earn less. It returns
	// false if it does not know them.
	Answers(row dataset.Row) (right, wrong string, ok bool)
}

// RowChecker is a Grader that can tell from a row alone that replies to it cannot be graded.
type RowChecker interface {
	// CheckRow returns nil, or the *environment.Fault that Grade would return for any reply.
	CheckRow(row dataset.Row) error
}

// CheckRows checks all rows if the grader is a RowChecker. An error is a *RowError, a *environment.Fault or the
// context's.
func CheckRows(ctx context.Context, rows dataset.Dataset, grader Grader) error {
	checker, ok := grader.(RowChecker)
	if !ok {
		return nil
	}
	splits, err := rows.Splits(ctx)
	if err != nil {
		return err
	}
	for _, split := range splits {
		for index := range split.Tasks {
			row, err := rows.Row(ctx, split.Name, index)
			if err != nil {
				return err
			}
			if err := checker.CheckRow(row); err != nil {
				return &RowError{Split: split.Name, Index: index, ID: row.ID, Err: err}
			}
		}
	}
	return nil
}

// RowError reports a row that cannot be graded. Its text numbers rows from 1, as lines of files are.
type RowError struct {
	Split string
	Index int64
	ID    string
	Err   error
}

// Error implements error.
func (e *RowError) Error() string {
	id := ""
	if e.ID != "" {
		id = fmt.Sprintf(" (id %q)", e.ID)
	}
	return fmt.Sprintf("row %d of split %q%s: %v", e.Index+1, e.Split, id, e.Err)
}

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

// Answers asks the grader for the answers to a row. The error is environment.ErrNoAnswers if it does not know them.
func Answers(grader Grader, row dataset.Row) (right, wrong string, err error) {
	if answerer, ok := grader.(Answerer); ok {
		if right, wrong, ok := answerer.Answers(row); ok {
			return right, wrong, nil
		}
	}
	return "", "", environment.ErrNoAnswers
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// Tasks are the rows of a data set, with the grader of replies to them. Environments embed them.
type Tasks struct {
	Rows   dataset.Dataset
	Grader Grader
}

// Splits implements environment.Environment.
func (t Tasks) Splits(ctx context.Context) ([]environment.Split, error) { return t.Rows.Splits(ctx) }

// Row returns the row of a task. An unknown row is a permanent fault.
func (t Tasks) Row(ctx context.Context, task environment.Task) (dataset.Row, error) {
	return t.Rows.Row(ctx, task.Split, task.Index)
}

// Answers implements environment.Answerer.
func (t Tasks) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	row, err := t.Row(ctx, task)
	if err != nil {
		return "", "", err
	}
	return Answers(t.Grader, row)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// RowsOnly is a grader without a judge. It checks an environment whose judge is known only to runs: it finds rows
// that cannot be judged, and its rewards mean nothing.
type RowsOnly struct{}

// Grade implements verify.Grader.
func (r RowsOnly) Grade(_ context.Context, row dataset.Row, _ environment.Reply) (verify.Score, error) {
	return verify.Score{}, r.CheckRow(row)
}

// CheckRow implements verify.RowChecker.
func (RowsOnly) CheckRow(row dataset.Row) error {
	_, err := criteriaOf(row)
	return err
}

var (
	_ verify.Grader     = RowsOnly{}
	_ verify.RowChecker = RowsOnly{}
)

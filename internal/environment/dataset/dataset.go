// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package dataset provides the tasks of environments. A data set is a fixed list of rows for each split. It knows
// neither how an episode of a row proceeds nor what a reply to it is worth.
package dataset

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Dataset consists of splits of rows. It does not change and is safe for concurrent use.
type Dataset interface {
	// Splits returns the splits, sorted by name.
	Splits() []environment.Split
	// Row returns a row of a split. Indexes begin at 0. The same index always gives the same row.
	Row(split string, index int64) (Row, error)
}

// Row is one task.
type Row struct {
	// Prompt is the question for the policy.
	Prompt string
	// Answer is what a verifier compares replies with.
	Answer string
}

// RowError reports that a split has no row of an index.
type RowError struct {
	Split string
	Index int64
}

// Error implements error.
func (e *RowError) Error() string {
	return fmt.Sprintf("the data set has no row %d of split %q", e.Index, e.Split)
}

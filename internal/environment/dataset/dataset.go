// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package dataset is where tasks come from. A data set is a fixed list of rows for each split; it knows
// neither how a row is played nor what a reply to it is worth.
package dataset

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Dataset is splits of rows. It does not change and is safe for concurrent use.
type Dataset interface {
	// Splits sorted by name.
	Splits() []environment.Split
	// Row of a split, from 0. The same index gives the same row, always.
	Row(split string, index int64) (Row, error)
}

// Row is one task.
type Row struct {
	// Prompt for the policy.
	Prompt string
	// Answer that a verifier compares with.
	Answer string
}

// RowError says that a split has no such row.
type RowError struct {
	Split string
	Index int64
}

// Error implements error.
func (e *RowError) Error() string {
	return fmt.Sprintf("the data set has no row %d of split %q", e.Index, e.Split)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package dataset provides the tasks of environments. A data set is a fixed list of rows for each split. It knows
// neither how an episode of a row proceeds nor the reward of a reply to it.
package dataset

import (
	"context"
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Dataset consists of splits of rows. It does not change and is safe for concurrent use. An error is a
// *environment.Fault, or the context's.
type Dataset interface {
	// Splits returns the splits, sorted by name.
	Splits(ctx context.Context) ([]environment.Split, error)
	// Row returns a row of a split. Indexes begin at 0. The same index always gives the same row. A row that the split
	// does not have is a permanent fault, which is caused by a *RowError.
	Row(ctx context.Context, split string, index int64) (Row, error)
}

// Row is one task. Its readers do not change it.
type Row struct {
	// ID identifies the row in its split, for people. It is empty if the data set has no names for its rows.
	ID string
	// Messages begin the conversation: the system prompt and the examples, if there are any, and the prompt.
	Messages []chat.Message
	// Prompt is the question for the policy, which is also the content of the last message.
	Prompt string
	// Answer is the text that a verifier compares replies with. It is empty if the data set has no answers.
	Answer string
	// Fields has the columns by name. A value has one of the types that encoding/json decodes to with UseNumber: nil,
	// bool, string, json.Number, []any or map[string]any. A name that the definition maps to a column is a field as well.
	Fields map[string]any
}

// Names of fields that every row has, unless a column of that name replaces them.
const (
	FieldID     = "id"
	FieldPrompt = "prompt"
	FieldAnswer = "answer"
)

// AllFields returns the fields, together with the row's id, prompt and answer, which a column of the same name
// replaces. The id and the answer are missing if the row has none.
func (r Row) AllFields() map[string]any {
	all := map[string]any{FieldPrompt: r.Prompt}
	if r.ID != "" {
		all[FieldID] = r.ID
	}
	if r.Answer != "" {
		all[FieldAnswer] = r.Answer
	}
	maps.Copy(all, r.Fields)
	return all
}

// NewRow returns a row whose only message is the prompt.
func NewRow(prompt, answer string) Row {
	return Row{Messages: []chat.Message{{Role: "user", Content: prompt}}, Prompt: prompt, Answer: answer}
}

// noRow returns the fault of a row that does not exist.
func noRow(split string, index int64) error {
	return &environment.Fault{Permanent: true, Err: &RowError{Split: split, Index: index}}
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

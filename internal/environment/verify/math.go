// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify/mathtext"
)

// Math rewards a reply with 1 if its last \boxed{...} equals the answer, and any other reply with 0. The answer may be
// a solution that ends with a \boxed{...} itself. A reply that a token limit cut earns 0.
type Math struct{}

// Grade implements Grader.
func (Math) Grade(_ context.Context, row dataset.Row, reply environment.Reply) (Score, error) {
	if row.Answer == "" {
		return Score{}, errNoAnswer()
	}
	found, ok := mathtext.Boxed(reply.Message.Content)
	return compare(reply, ok, ok && mathtext.Equal(found, row.Answer)).score(), nil
}

// Answers implements Answerer.
func (Math) Answers(row dataset.Row) (right, wrong string, ok bool) {
	answer := row.Answer
	if boxed, ok := mathtext.Boxed(answer); ok {
		answer = boxed
	}
	right, wrong = `\boxed{`+answer+`}`, `\boxed{}`
	found, ok := mathtext.Boxed(right)
	return right, wrong, ok && mathtext.Equal(found, row.Answer) && !mathtext.Equal("", row.Answer)
}

var (
	_ Grader   = Math{}
	_ Answerer = Math{}
)

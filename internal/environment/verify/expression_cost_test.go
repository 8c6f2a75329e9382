// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector makes an evaluation up to its bound ten times slower.
//go:build !race

package verify

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

func TestExpressionCostIsBounded(t *testing.T) {
	numbers := strings.Repeat("7 ", 3000)
	for _, expression := range []string{
		`reply.numbers().map(a, reply.numbers().map(b, a * b).size()).size()`,
		`reply.numbers().all(a, reply.numbers().all(b, reply.numbers().all(c, a + b + c >= 0.0)))`,
		`reply.numbers().all(a, reply.json() == {})`,
	} {
		grader, err := NewExpression(expression)
		if err != nil {
			t.Fatal(err)
		}
		if score, err := grader.Grade(t.Context(), answer("1"), says(numbers)); err == nil ||
			!environment.AsFault(err).Permanent || !strings.Contains(err.Error(), "cost") {
			t.Errorf("%s = %+v, %v, want a permanent fault that names the cost", expression, score, err)
		}
	}
}

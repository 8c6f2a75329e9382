// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWeighted(t *testing.T) {
	grader := Weighted{
		{"correct", 1, Math{}},
		{"brief", 0.5, must(NewExpression("size(reply.text) < 400 ? 1.0 : 0.0"))},
		{"boxes", -0.25, must(NewExpression(`size(reply.text.split('boxed')) - 1`))},
	}
	got, err := grader.Grade(t.Context(), answer("12"), says(`\boxed{11}, \boxed{12}`))
	want := Score{
		Reward: 1,
		Parts:  map[string]float64{"correct": 1, "brief": 0.5, "boxes": -0.5},
		Metrics: map[string]float64{
			"correct": 1, "brief": 1, "boxes": 2,
			"correct/correct": 1, "correct/wrong": 0, "correct/no_answer": 0, "correct/truncated": 0, "correct/answered": 1,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Grade: err %v (-want +got):\n%s", err, diff)
	}
}

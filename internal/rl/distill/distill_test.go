// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package distill_test

import (
	"compress/gzip"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/distill"
	"github.com/tinker-operator/tinker-operator/internal/rl/distill/distilltest"
)

func TestTeachersOfTheCookbook(t *testing.T) {
	f, err := os.Open("testdata/cookbook.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	steps := distilltest.Read(t, lines)
	if len(steps) != 2 {
		t.Fatalf("%d steps are recorded, want 2", len(steps))
	}
	for _, step := range steps {
		distilltest.Compare(t, step)
	}
}

// lesson returns the lesson of a datum with one given token and two sampled tokens.
func lesson(teacher ...float32) distill.Lesson {
	return distill.Lesson{
		Environment: "math", Teacher: teacher, Coefficient: 0.5,
		Datum: rl.Datum{
			Targets: []int32{1, 2, 3}, Mask: []bool{false, true, true},
			Logprobs: []float32{0, -1, -2}, Advantages: []float32{0, 1, 1},
		},
	}
}

func TestTeach(t *testing.T) {
	plain, discounted, other := lesson(-9, -3, -1), lesson(-9, -3, -1), lesson(0, -1, -2)
	discounted.Discount, other.Environment = 0.5, "code"
	got, err := distill.Teach([]distill.Lesson{plain, discounted, other})
	if err != nil {
		t.Fatalf("Teach: %v", err)
	}
	// The policy's log-probabilities are higher than the teacher's by 2, and lower by 1.
	want := map[string]distill.KL{"math": {Sum: 2, Tokens: 4}, "code": {Sum: 0, Tokens: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Teach (-want +got):\n%s", diff)
	}
	if got["math"].Mean() != 0.5 || (distill.KL{}).Mean() != 0 {
		t.Errorf("Mean = %v and %v, want 0.5 and 0", got["math"].Mean(), (distill.KL{}).Mean())
	}
	for name, c := range map[string]struct {
		lesson distill.Lesson
		want   []float32
	}{
		"each token has its own term":               {plain, []float32{0, 0, 1.5}},
		"a discount adds the terms of later tokens": {discounted, []float32{0, 0.25, 1.5}},
		"a teacher that agrees changes nothing":     {other, []float32{0, 1, 1}},
	} {
		if diff := cmp.Diff(c.want, c.lesson.Datum.Advantages, cmpopts.EquateApprox(0, 1e-7)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTeachRefusesWrongLogprobs(t *testing.T) {
	for name, c := range map[string]struct {
		lesson distill.Lesson
		want   string
	}{
		"one too few":     {lesson(-1, -1), "2 log-probabilities of the teacher for 3 tokens"},
		"not a number":    {lesson(0, float32(math.NaN()), -1), "token 1 is NaN"},
		"never sampled":   {lesson(0, -1, float32(math.Inf(-1))), "token 2 is -Inf"},
		"above certainty": {lesson(0, 0.5, -1), "token 1 is 0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			good := lesson(0, -1, -3)
			_, err := distill.Teach([]distill.Lesson{good, c.lesson})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Teach: %v, want %q", err, c.want)
			}
			if diff := cmp.Diff([]float32{0, 1, 1}, good.Datum.Advantages); diff != "" {
				t.Errorf("the advantages of another datum changed (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := distill.Teach([]distill.Lesson{lesson(float32(math.NaN()), -1, -1)}); err != nil {
		t.Errorf("Teach with no number for a token that was not sampled: %v", err)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"math"
	"testing"
)

func TestExp32(t *testing.T) {
	for x := float32(-86.9); x < 88; x += 0.0137 {
		want := math.Exp(float64(x))
		if got := float64(Exp32(x)); math.Abs(got-want) > 3e-7*want {
			t.Fatalf("Exp32(%v) is %v, want %v", x, got, want)
		}
	}
	for name, test := range map[string]struct{ x, want float32 }{
		"one at zero":            {0, 1},
		"zero far below":         {-100, 0},
		"zero at minus infinity": {float32(math.Inf(-1)), 0},
		"infinity far above":     {100, float32(math.Inf(1))},
	} {
		if got := Exp32(test.x); got != test.want {
			t.Errorf("%s: Exp32(%v) is %v", name, test.x, got)
		}
	}
	if got := Exp32(float32(math.NaN())); got == got {
		t.Errorf("Exp32(NaN) = %v", got)
	}
}

func TestLogSumExp(t *testing.T) {
	logits := []float32{-1, 90, 3, 89.5}
	want := 90 + math.Log(math.Exp(-91)+1+math.Exp(-87)+math.Exp(-0.5))
	if got := LogSumExp(logits); math.Abs(got-want) > 1e-6 {
		t.Errorf("is %v, want %v", got, want)
	}
}

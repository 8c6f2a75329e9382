// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package countdown

import (
	"math/big"
	"strings"
	"testing"
)

// TestScore compares scores with the scores of rLLM's compute_score: 0 is NoAnswer, 0.1 is Wrong and 1 is Correct.
func TestScore(t *testing.T) {
	cases := map[string]struct {
		reply              string
		nums               []int64
		target             string
		compatible, strict Result
	}{
		"all numbers make the target": {"<answer>44+19+35</answer>", []int64{44, 19, 35}, "98", Correct, Correct},
		"an equation":                 {"<answer>(44+19)+35 = 98</answer>", []int64{44, 19, 35}, "98", Wrong, Wrong},
		"a number that is not used":   {"<answer>44+19</answer>", []int64{44, 19, 35}, "98", Wrong, Wrong},
		"a power":                     {"<answer>2**3</answer>", []int64{2, 3}, "8", Correct, Wrong},
		"a floor division":            {"<answer>7//2</answer>", []int64{7, 2}, "3", Correct, Wrong},
		"a decimal of two numbers":    {"<answer>1.5</answer>", []int64{1, 5}, "1.5", Correct, Wrong},
		"a leading zero":              {"<answer>07+1</answer>", []int64{7, 1}, "8", Wrong, Wrong},
		"a line break":                {"<answer>7\n+1</answer>", []int64{7, 1}, "8", NoAnswer, Correct},
		"a tag in capitals":           {"<ANSWER>7+1</ANSWER>", []int64{7, 1}, "8", NoAnswer, Correct},
		"two answers, the last one right": {"<answer>7-1</answer> no, <answer>7+1</answer>", []int64{7, 1}, "8", Correct,
			Correct},
		"two answers, the first one right": {"<answer>7+1</answer> no, <answer>7-1</answer>", []int64{7, 1}, "8", Wrong,
			Wrong},
		"factors without a sign": {"<answer>(7)(1)</answer>", []int64{7, 1}, "7", Wrong, Wrong},
		"a multiplication sign":  {"<answer>1 × 7</answer>", []int64{7, 1}, "7", Wrong, Wrong},
		"a negated parenthesis":  {"<answer>-(1-7)</answer>", []int64{7, 1}, "6", Correct, Correct},
		"a division by zero":     {"<answer>7/(1-1)</answer>", []int64{7, 1, 1}, "7", Wrong, Wrong},
		"an empty reply":         {"", []int64{7, 1}, "8", NoAnswer, NoAnswer},
		"no solution":            {"No solution found", []int64{7, 1}, "8", NoAnswer, NoAnswer},
		"an empty answer":        {"<answer></answer>", []int64{7, 1}, "8", Wrong, Wrong},
		"what precedes the assistant's turn": {"<answer>7+1</answer> Assistant: I pass.", []int64{7, 1}, "8", NoAnswer,
			Correct},
		"a quotient that is not whole":      {"<answer>(8/3)*3</answer>", []int64{8, 3, 3}, "8", Correct, Correct},
		"a value that is nearly the target": {"<answer>1/3</answer>", []int64{1, 3}, "0.333333", Correct, Wrong},
		"a number twice":                    {"<answer>7+7</answer>", []int64{7}, "14", Wrong, Wrong},
		"a power that is enormous":          {"<answer>9**9**9</answer>", []int64{9, 9, 9}, "1", Wrong, Wrong},
		"a power that is complex":           {"<answer>(-8)**(1/3)</answer>", []int64{8, 1, 3}, "2", Wrong, Wrong},
		"a power of a sign":                 {"<answer>-2**2</answer>", []int64{2, 2}, "-4", Correct, Wrong},
		"a tuple":                           {"<answer>()</answer>", nil, "0", Wrong, Wrong},
		"deep parentheses": {"<answer>" + strings.Repeat("(", 400) + "7" + strings.Repeat(")", 400) +
			"</answer>", []int64{7}, "7", Wrong, Wrong},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target, _ := new(big.Rat).SetString(tc.target)
			if got := Compatible(tc.reply, tc.nums, target); got != tc.compatible {
				t.Errorf("Compatible = %d, want %d", got, tc.compatible)
			}
			if got := Strict(tc.reply, tc.nums, target); got != tc.strict {
				t.Errorf("Strict = %d, want %d", got, tc.strict)
			}
		})
	}
}

func TestPythonArithmetic(t *testing.T) {
	for expression, want := range map[string]string{
		"7//2": "3", "-7//2": "-4", "7//-2": "-4", "1.0//0.1": "9", "8480.3//1.2": "7066", "2**-1": "0.5", "2**3**2": "512",
		"10/4": "2.5", "0.1+0.2": "0.30000000000000004",
		"(-1)**4": "1", "(-1)**5": "-1", "0**0": "1", "1.5.": "", "2.**2": "4", "1 2": "", "0**-1": "", "00": "0", "1e5": "",
		"--3": "3", "2*-3": "-6", "5-+3": "2",
		"9**999": new(big.Int).Exp(big.NewInt(9), big.NewInt(999), nil).String(), "9**999*1.5": "", "9**999/2": "",
	} {
		value, err := evaluatePython(expression)
		wanted, ok := new(big.Rat).SetString(want)
		if (err == nil) != ok || ok && !value.near(wanted) {
			t.Errorf("%s = %+v, %v, want %q", expression, value, err, want)
		}
	}
}

func TestSolve(t *testing.T) {
	for target, nums := range map[int64][]int64{98: {44, 19, 35}, 24: {3, 3, 8, 8}, 7: {7}} {
		expression, ok := Solve(nums, big.NewRat(target, 1))
		if reply := "<answer>" + expression + "</answer>"; !ok || Strict(reply, nums, big.NewRat(target, 1)) != Correct ||
			Compatible(reply, nums, big.NewRat(target, 1)) != Correct {
			t.Errorf("Solve(%v, %d) = %q, %v", nums, target, expression, ok)
		}
	}
	for _, nums := range [][]int64{nil, {1, 1}, {1, 2, 3, 4, 5, 6}} {
		if expression, ok := Solve(nums, big.NewRat(100, 1)); ok {
			t.Errorf("Solve(%v, 100) = %q", nums, expression)
		}
	}
}

func FuzzScore(f *testing.F) {
	f.Add("<answer>44+19+35</answer>")
	f.Add("<answer>2**3//4.5-(1)</answer>")
	f.Fuzz(func(t *testing.T, reply string) {
		nums, target := []int64{1, 2, 3, 4}, big.NewRat(10, 1)
		strict, compatible := Strict(reply, nums, target), Compatible(reply, nums, target)
		// An answer that is right by the strict rules is right by rLLM's rules too, if rLLM finds the same answer.
		if strict == Correct && compatible == Wrong && strings.Count(strings.ToLower(reply), "<answer>") == 1 {
			t.Errorf("%q is right strictly and wrong compatibly", reply)
		}
	})
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

// TestSameOutput compares outputs as the public grader does.
func TestSameOutput(t *testing.T) {
	cases := map[string]struct {
		got, want string
		same      bool
	}{
		"the same":                        {"1\n2\n", "1\n2\n", true},
		"no line break at the end":        {"1\n2", "1\n2\n", true},
		"white space at the ends":         {"  1 \n 2\t\n\n", "1\n2", true},
		"lines of Windows":                {"1\r\n2\r\n", "1\n2\n", true},
		"white space within a line":       {"1  2", "1 2", false},
		"empty lines":                     {"1\n\n2\n", "1\n2\n", true},
		"empty lines that are expected":   {"1\n2\n", "1\n\n2\n", true},
		"lines with spaces alone":         {"1\n \n2\n", "1\n2\n", false},
		"another order":                   {"2\n1\n", "1\n2\n", false},
		"a number written differently":    {"1.0\n2.50\n", "1\n2.5\n", true},
		"a number that is close":          {"0.333333333\n", "0.3333333\n", true},
		"a number that is not close":      {"0.3334\n", "0.3333\n", false},
		"whole numbers are not close":     {"100000\n", "100001\n", false},
		"negative ones are":               {"-1000001\n", "-1000000\n", true},
		"several numbers on a line":       {"1.0 2.0\n", "1 2\n", false},
		"more lines":                      {"1.5\n2.5\n3.5\n", "1.5\n2.5\n", false},
		"fewer lines":                     {"1.5\n", "1.5\n2.5\n", false},
		"a text":                          {"yes\n", "YES\n", false},
		"nothing":                         {"", "", true},
		"nothing where something is":      {"", "1", false},
		"no number":                       {"nan\n", "nan\n1\n", false},
		"hexadecimal digits are no float": {"0x10\n", "16.0\n", false},
		"a number with an underscore":     {"1_000.5\n", "1000.5\n", true},
	}
	for name, tc := range cases {
		if got := sameOutput(tc.got, tc.want); got != tc.same {
			t.Errorf("%s: got %v, want %v", name, got, tc.same)
		}
	}
}

func TestSameReturn(t *testing.T) {
	cases := map[string]struct {
		got, want string
		same      bool
	}{
		"a number":                          {"3", "3", true},
		"a float that is whole":             {`{"f":"3.0"}`, "3", true},
		"a bool is a number":                {"true", "1", true},
		"a tuple is a list":                 {`{"t":[1,2]}`, "[1,2]", true},
		"tuples within a list":              {`{"l":[{"t":[1,2]}]}`, "[[1,2]]", true},
		"what is expected is in a list":     {"3", "[3]", true},
		"the first of several is not meant": {"3", "[3,4]", false},
		"whole numbers as keys":             {`{"d":[[1,2]]}`, `{"1":2}`, true},
		"a set is no JSON":                  {`{"s":[1]}`, "[1]", false},
		"an object is no JSON":              {`{"o":"Node"}`, `"Node"`, false},
		"beyond floats":                     {"9007199254740993", "9007199254740992", false},
		"a float is exact":                  {`{"f":"0.30000000000000004"}`, "0.3", false},
		"None":                              {"null", "null", true},
		"a text is no number":               {`"3"`, "3", false},
	}
	for name, tc := range cases {
		got, err := decodeValue(tc.got)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := ofJSON(tc.want)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if same := sameReturn(got, want); same != tc.same {
			t.Errorf("%s: got %v, want %v", name, same, tc.same)
		}
	}
}

func TestAssertions(t *testing.T) {
	whole := func(n int64) any { return big.NewInt(n) }
	cases := map[string]struct {
		text, function string
		want           []string // expressions
		expected       []any
	}{
		"a call": {text: "assert f(1) == 2", want: []string{"f(1)"}, expected: []any{whole(2)}},
		"with a " +
			"message": {text: `assert f("a,=='") == [1, 'x'], "no"`, want: []string{`f("a,=='")`},
			expected: []any{list{whole(1), "x"}}},
		"in parentheses": {text: "assert (f((1, 2)) == (1, -2.5))", want: []string{"f((1, 2))"},
			expected: []any{tuple{whole(1), -2.5}}},
		"a dict, a set and None": {text: "assert f() == {1: {2, 3}, 'a': None}", want: []string{"f()"},
			expected: []any{dict{{whole(1), set{whole(2), whole(3)}}, {"a", nil}}}},
		"a check of HumanEval": {
			text: "\n\ndef check(candidate):\n    assert candidate([\n        1.0, 2.0], 0.3) == True\n    assert " +
				"candidate([]) == False\n",
			function: "near",
			want: []string{"(lambda candidate: candidate([\n        1.0, 2.0], 0.3))(near)",
				"(lambda candidate: candidate([]))(near)"}, expected: []any{true, false}},
		"no comparison":              {text: "assert f(1)"},
		"what is expected is a call": {text: "assert f(1) == g(2)"},
		"another statement":          {text: "x = 1\nassert f(x) == 1"},
		"an open bracket":            {text: "assert f(1 == 2"},
		"another comparison":         {text: "assert f(1) != 2"},
	}
	for name, tc := range cases {
		tests, err := assertions(tc.text, tc.function)
		if (err != nil) != (tc.want == nil) {
			t.Errorf("%s: got %v", name, err)
		}
		var got []string
		var expected []any
		for _, test := range tests {
			got, expected = append(got, test.expression), append(expected, test.expected)
		}
		if tc.want != nil {
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: expressions (-want +got):\n%s", name, diff)
			}
			for i := range tc.expected {
				if i < len(expected) && !equal(tc.expected[i], expected[i]) {
					t.Errorf("%s: got %v, want %v", name, expected[i], tc.expected[i])
				}
			}
		}
	}
}

func TestTestsOf(t *testing.T) {
	stdin := []test{{stdin: "1\n", output: "2\n"}}
	call := []test{{kind: kindCall, function: "f", arguments: []string{"1", "[2]"}, expected: big.NewInt(3)}}
	cases := map[string]struct {
		value    any
		metadata any
		want     []test
	}{
		"inputs with outputs": {value: []any{map[string]any{"input": "1\n", "output": "2\n", "testtype": "stdin_stdout"}},
			want: stdin},
		"as a text":      {value: `[{"input": "1\n", "output": "2\n"}]`, want: stdin},
		"two lists":      {value: map[string]any{"inputs": []any{"1\n"}, "outputs": []any{"2\n"}}, want: stdin},
		"lists of lines": {value: `{"inputs": [["1", ""]], "outputs": [["2", ""]]}`, want: stdin},
		"a call": {value: `[{"input": "1\n[2]", "output": "3", "testtype": "functional", "metadata": {"func_name": "f"}}]`,
			want: call},
		"a call that the row names": {value: `[{"input": "1\n[2]", "output": "3", "testtype": "functional"}]`,
			metadata: `{"func_name": "f"}`, want: call},
		"calls in two lists":          {value: `{"fn_name": "f", "inputs": [[1, [2]]], "outputs": [3]}`, want: call},
		"no tests":                    {value: []any{}},
		"a number of others":          {value: `{"inputs": ["1"], "outputs": []}`},
		"a call of no name":           {value: `[{"input": "1", "output": "3", "testtype": "functional"}]`},
		"an argument that is no JSON": {value: `{"fn_name": "f", "inputs": ["x"], "outputs": ["3"]}`},
		"no output":                   {value: `[{"input": "1"}]`},
	}
	for name, tc := range cases {
		got, err := testsOf(dataset.Row{Fields: map[string]any{"tests": tc.value, "metadata": tc.metadata}}, "tests")
		if (err != nil) != (tc.want == nil) {
			t.Errorf("%s: got %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(test{}), cmp.Comparer(func(a, b *big.Int) bool {
			return a.Cmp(b) == 0
		})); tc.want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProgram(t *testing.T) {
	cases := map[string]struct {
		reply, want string
		found       bool
	}{
		"one block":       {"text\n```python\nprint(1)\n```\n", "print(1)", true},
		"the last of two": {"```\na\n```\n```py\nb\n```", "b", true},
		"C++":             {"```c++\nint main() {}\n```", "int main() {}", true},
		"none":            {"print(1)", "", false},
		"no end":          {"```python\nprint(1)", "", false},
	}
	for name, tc := range cases {
		if got, found := Program(tc.reply); got != tc.want || found != tc.found {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, found, tc.want, tc.found)
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package codetests

import (
	"fmt"
	"strings"
)

// given is a test as a data set gives it.
type given struct {
	Input    string         `json:"input"`
	Output   string         `json:"output"`
	TestType string         `json:"testtype"`
	Metadata map[string]any `json:"metadata"`
}

// script is a task whose solution reads and prints: body computes the variable answer, a list of lines.
type script struct {
	body  string
	tests [][2]string
}

var scripts = []script{
	{"answer = [2 * int(input())]", [][2]string{{"3\n", "6\n"}, {"-4\n", "-8\n"}}},
	{"answer = [input()[::-1]]", [][2]string{{"abc\n", "cba\n"}, {"x y\n", "y x\n"}}},
	{"a, b = map(int, input().split())\nanswer = [a + b, a - b]", [][2]string{{"1 2\n", "3\n-1\n"}, {"5 5\n", "10\n0\n"}}},
	{"n = int(input())\nanswer = [i * i for i in range(1, n + 1)]", [][2]string{{"3\n", "1\n4\n9\n"}, {"1\n", "1"}}},
	{"answer = [sum(map(int, input().split()))]", [][2]string{{"1 2 3\n", "6"}, {"100000 1\n", "100001"}}},
	{"answer = [int(input()) / 4]", [][2]string{{"1\n", "0.25\n"}, {"6\n", "1.5\n"}}},
	{"answer = ['YES' if int(input()) % 2 == 0 else 'NO']", [][2]string{{"4\n", "YES\n"}, {"5\n", "NO\n"}}},
	{"n = int(input())\nrows = [input() for _ in range(n)]\nanswer = sorted(rows)",
		[][2]string{{"2\nb\na\n", "a\nb\n"}, {"3\nc\nb\na\n", "a\nb\nc\n"}}},
	{"words = input().split()\nanswer = [len(words), max(words, key=len)]", [][2]string{{"to be or\n", "3\nto\n"}}},
	{"x = float(input())\nanswer = [x ** 0.5, x * x]", [][2]string{{"4\n", "2.0\n16.0\n"}, {"2.25\n", "1.5\n5.0625\n"}}},
	{"from collections import Counter\nc = Counter(input())\nanswer = [c.most_common(1)[0][1]]",
		[][2]string{{"aab\n", "2"}, {"abc\n", "1"}}},
	{"lo, hi = 0, int(input())\nwhile lo < hi:\n    mid = (lo + hi + 1) // 2\n    if mid * mid <= int(1e4):\n      " +
		"  lo = mid\n" +
		"    else:\n        hi = mid - 1\nanswer = [lo]", [][2]string{{"1000\n", "100"}, {"7\n", "7"}}},
	{"def gcd(a, b):\n    return a if b == 0 else gcd(b, a % b)\nanswer = [gcd(*map(int, input().split()))]",
		[][2]string{{"12 18\n", "6\n"}, {"7 5\n", "1\n"}}},
	{"answer = [' '.join(sorted(input().split()))]", [][2]string{{"b a\n", "a b\n"}, {"c c a\n", "a c c\n"}}},
}

// scriptVariants make programs of a body. Each prints the lines of the answer in its way.
var scriptVariants = map[string]func(body string) string{
	"right":               func(b string) string { return b + "\nprint(*answer, sep='\\n')" },
	"one print a line":    func(b string) string { return b + "\nfor line in answer:\n    print(line)" },
	"spaces at the ends":  func(b string) string { return b + "\nfor line in answer:\n    print(line, ' ')" },
	"empty lines between": func(b string) string { return b + "\nfor line in answer:\n    print(line, '\\n')" },
	"no line break": func(b string) string {
		return b + "\nimport sys\n" +
			"sys.stdout.write('\\n'.join(map(str, answer)))"
	},
	"a main function": func(b string) string {
		return "def main():\n" + indent(b) + "\n    print(*answer, " +
			"sep='\\n')\nmain()"
	},
	"a main guard": func(b string) string {
		return b + "\nif __name__ == '__main__':\n    print(*answer, " +
			"sep='\\n')"
	},
	"sys.exit":               func(b string) string { return b + "\nprint(*answer, sep='\\n')\nimport sys\nsys.exit(0)" },
	"sys.exit with a status": func(b string) string { return b + "\nprint(*answer, sep='\\n')\nimport sys\nsys.exit(3)" },
	"wrong":                  func(b string) string { return b + "\nprint(*answer, sep='\\n')\nprint('more')" },
	"nothing":                func(b string) string { return b },
	"a constant":             func(string) string { return "print(1)" },
	"lines in one":           func(b string) string { return b + "\nprint(*answer, '.')" },
	"another case": func(b string) string {
		return b + "\nprint(*(str(line).swapcase() + '!' for line in answer), sep='\\n')"
	},
	"an exception at the end": func(b string) string {
		return b + "\nprint(*answer, sep='\\n')\nraise ValueError()"
	},
	"a syntax error":  func(b string) string { return b + "\nprint(*answer, sep='\\n'" },
	"an endless loop": func(b string) string { return b + "\nprint(*answer, sep='\\n')\nwhile True:\n    pass" },
	"os._exit":        func(string) string { return "import os\nos._exit(0)" },
	"exit":            func(b string) string { return b + "\nprint(*answer, sep='\\n')\nexit()" },
	"standard input as bytes": func(b string) string {
		return "import sys\nlines = iter(sys.stdin.buffer.read().decode().split('\\n'))\ninput = lambda: next(lines)\n" + b +
			"\nprint(*answer, sep='\\n')"
	},
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// call is a task whose solution is a function f.
type call struct {
	arguments, body string
	tests           [][2]string
}

var calls = []call{
	{"a, b", "return a + b", [][2]string{{"1\n2", "3"}, {"-1\n1", "0"}}},
	{"xs", "return sorted(xs)", [][2]string{{"[3, 1, 2]", "[1, 2, 3]"}, {"[]", "[]"}}},
	{"s", "return s[::-1]", [][2]string{{`"ab"`, `"ba"`}, {`""`, `""`}}},
	{"n", "return n % 2 == 0", [][2]string{{"2", "true"}, {"3", "false"}}},
	{"xs", "return [[x, x * x] for x in xs]", [][2]string{{"[1, 2]", "[[1, 1], [2, 4]]"}}},
	{"n", "return n / 2", [][2]string{{"3", "1.5"}, {"4", "2"}}},
	{"words", "return {w: len(w) for w in words}", [][2]string{{`["a", "bc"]`, `{"a": 1, "bc": 2}`}}},
	{"xs, k", "return xs[k:] + xs[:k]", [][2]string{{"[1, 2, 3]\n1", "[2, 3, 1]"}, {"[5]\n0", "[5]"}}},
}

// callVariants make programs of a function's arguments and body.
var callVariants = map[string]func(c call) string{
	"right": func(c call) string { return define(c, c.body) },
	"a class Solution": func(c call) string {
		return "class Solution:\n" + indent("def f(self, "+c.arguments+"):\n "+
			"   "+c.body)
	},
	"annotations": func(c call) string {
		return "def f(" + c.arguments + ") -> Optional[List[int]]:\n    " + c.body
	},
	"noise": func(c call) string { return define(c, "print('noise')\n    "+c.body) },
	"a tuple": func(c call) string {
		return define(c, "r = (lambda: "+strings.TrimPrefix(c.body, "return ")+")()\n    return tuple(r) if "+
			"isinstance(r, list) else r")
	},
	"tuples within a list": func(c call) string {
		return define(c, "r = (lambda: "+strings.TrimPrefix(c.body, "return ")+
			")()\n    return [tuple(x) if isinstance(x, list) else x for x in r] if isinstance(r, list) else r")
	},
	"the first alone": func(c call) string {
		return define(c, "r = (lambda: "+strings.TrimPrefix(c.body, "return ")+")()\n    return r[0] if isinstance(r, "+
			"list) and r else r")
	},
	"a text": func(c call) string {
		return define(c, "return "+
			"str("+strings.TrimPrefix(c.body, "return ")+")+'!'")
	},
	"None":               func(c call) string { return define(c, "return None") },
	"an object":          func(c call) string { return define(c, "return object()") },
	"a set":              func(c call) string { return define(c, "return {1}") },
	"an exception":       func(c call) string { return define(c, "raise ValueError()") },
	"another name":       func(c call) string { return "def g(" + c.arguments + "):\n    " + c.body },
	"an endless loop":    func(c call) string { return define(c, "while True:\n        pass") },
	"os._exit":           func(c call) string { return define(c, "import os\n    os._exit(0)") },
	"a syntax error":     func(c call) string { return define(c, "return (") },
	"frames of a grader": func(c call) string { return cheat(c) },
}

func define(c call, body string) string { return "def f(" + c.arguments + "):\n    " + body }

// cheat looks for the expected output in the frames that have called it.
func cheat(c call) string {
	return define(c, "import sys\n    frame = sys._getframe(1)\n    while frame:\n        found = "+
		"frame.f_locals.get('in_outs')\n"+
		"        if found:\n            return found['outputs'][frame.f_locals['index']]\n        frame = "+
		"frame.f_back\n    return None")
}

// program is one reply with its tests.
type program struct {
	Reply   string  `json:"reply"`
	Tests   []given `json:"tests"`
	variant string
}

// programs lists all programs.
func programs() []program {
	var all []program
	reply := func(code string) string { return "My answer:\n```python\n" + code + "\n```\n" }
	for _, task := range scripts {
		tests := make([]given, len(task.tests))
		for i, t := range task.tests {
			tests[i] = given{Input: t[0], Output: t[1], TestType: "stdin_stdout", Metadata: map[string]any{}}
		}
		for name, variant := range scriptVariants {
			all = append(all, program{reply(variant(task.body)), tests, "script: " + name})
		}
	}
	for _, task := range calls {
		tests := make([]given, len(task.tests))
		for i, t := range task.tests {
			tests[i] = given{t[0], t[1], "functional", map[string]any{"func_name": "f"}}
		}
		for name, variant := range callVariants {
			all = append(all, program{reply(variant(task)), tests, "call: " + name})
		}
	}
	for i, text := range []string{"no code", "```python\nprint(1)", "```python\nprint(2)\n```\nor\n```python\n" +
		"print(1)\n```"} {
		all = append(all, program{text, []given{{Output: "1", TestType: "stdin_stdout", Metadata: map[string]any{}}},
			fmt.Sprintf("reply: %d", i)})
	}
	return all
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package codetests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// runner is the runner's program.
var runner string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	runner = filepath.Join(dir, "runner")
	build := exec.Command("go", "build", "-o", runner, "../../../cmd/runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the runner: %v\n%s", err, text)
		return 1
	}
	return m.Run()
}

// newGrader starts a runner, and returns a grader whose programs it runs.
func newGrader(t *testing.T, change func(*Options)) *Grader {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no program can run")
	}
	dir, err := os.MkdirTemp("", "tests") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "runner.sock")
	process := exec.Command(runner, "--socket", socket, "--scratch", filepath.Join(dir, "scratch"))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	host := &pythonreward.Host{Socket: socket, InheritEnv: true}
	t.Cleanup(func() {
		host.Close()
		_ = process.Process.Kill()
		_ = process.Wait()
		os.RemoveAll(dir)
	})
	o := Options{Field: "tests", Timeout: time.Second, MemoryBytes: 256 << 20, Processes: 2, Minimum: isolation.Process}
	if change != nil {
		change(&o)
	}
	g, err := New(host, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func code(text string) environment.Reply {
	return environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: "```python\n" + text + "\n```"}}
}

func rowOf(tests any) dataset.Row { return dataset.Row{Fields: map[string]any{"tests": tests}} }

func grade(t *testing.T, g verify.Grader, row dataset.Row, reply environment.Reply) verify.Score {
	t.Helper()
	score, err := g.Grade(t.Context(), row, reply)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(score.Metrics, func(_ string, value float64) bool { return value == 0 })
	return score
}

const (
	sums  = `[{"input": "1 2\n", "output": "3\n"}, {"input": "10 -3", "output": "7"}]`
	calls = `{"fn_name": "add", "inputs": ["1\n2", "10\n-3"], "outputs": ["3", "7"]}`
)

func TestGrade(t *testing.T) {
	g := newGrader(t, nil)
	cases := map[string]struct {
		tests, program string
		want           string // the metric that is 1, besides answered
	}{
		"a script": {sums, "a, b = map(int, input().split())\nprint(a + b)", "correct"},
		"a main function": {sums, "def main():\n    print(sum(map(int, input().split())))\n" +
			"if __name__ == '__main__':\n    main()", "correct"},
		"an end by sys.exit": {sums, "print(sum(map(int, input().split())))\nimport sys\nsys.exit(0)", "correct"},
		"what is imported":   {sums, "print(reduce(lambda a, b: a + b, map(int, input().split())))", "correct"},
		"wrong":              {sums, "print(3)", "wrong"},
		"a function": {calls, "def add(a: int, b: Optional[int]) -> int:\n    print('noise')\n" +
			"    return a + b", "correct"},
		"a class Solution": {calls, "class Solution:\n    def add(self, a, b):\n        return a + b", "correct"},
		"no such function": {calls, "def sub(a, b):\n    return a - b", MetricFailed},
		"an exception":     {calls, "def add(a, b):\n    raise ValueError()", MetricFailed},
		"assertions":       {`["assert add(1, 2) == 3", "assert add('a', 'b') == \"ab\""]`, "def add(a, b):\n    return a + b", "correct"},
		"a check": {"def check(candidate):\n    assert candidate(1, 2) == 3\n",
			"def add(a, b):\n    return a + b", "correct"},
		"an endless loop": {sums, "while True: pass", MetricTimeLimit},
		"too much memory": {sums, "x = bytearray(1 << 40)", MetricFailed},
		"too much output": {sums, "while True: print('x' * 1000000)", MetricOverLimit},
		"os._exit":        {sums, "import os; os._exit(0)", "wrong"},
		"a forged value": {calls, "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'3')\n" +
			"    except OSError: pass\nos._exit(0)", "wrong"},
		"a syntax error": {sums, "def", MetricFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			row := rowOf(tc.tests)
			row.Fields["entry_point"] = "add"
			want := map[string]float64{verify.MetricAnswered: 1, tc.want: 1}
			reward := 0.0
			if tc.want == verify.MetricCorrect {
				reward = 1
			} else {
				want[verify.MetricWrong] = 1
			}
			got := grade(t, g, row, code(tc.program))
			if diff := cmp.Diff(want, got.Metrics); diff != "" || got.Reward != reward {
				t.Errorf("got a reward of %v, want %v; metrics (-want +got):\n%s", got.Reward, reward, diff)
			}
		})
	}
	if got := grade(t, g, rowOf(sums), environment.Reply{Message: chat.Message{Content: "no code"}}); got.Reward != 0 ||
		got.Metrics[verify.MetricNoAnswer] != 1 {
		t.Errorf("a reply without code: got %+v", got)
	}
	cut := code("a, b = map(int, input().split())\nprint(a + b)")
	cut.Truncated = true
	if got := grade(t, g, rowOf(sums), cut); got.Reward != 0 || got.Metrics[verify.MetricTruncated] != 1 {
		t.Errorf("a reply that was cut: got %+v", got)
	}
}

func TestFraction(t *testing.T) {
	g := newGrader(t, func(o *Options) { o.Fraction = true })
	got := grade(t, g, rowOf(sums), code("print(3)"))
	if got.Reward != 0.5 || got.Metrics[MetricPassed] != 0.5 || got.Metrics[verify.MetricWrong] != 1 {
		t.Errorf("one of two: got %+v, want half", got)
	}
}

func TestCommand(t *testing.T) {
	g := newGrader(t, func(o *Options) { o.Command = []string{"sh", "program"} })
	if got := grade(t, g, rowOf(sums), code("read a b; echo $((a + b))")); got.Reward != 1 {
		t.Errorf("a script of the shell: got %+v, want 1", got)
	}
	if got := grade(t, g, rowOf(sums), code("read a b; echo $((a + b)); exit 3")); got.Reward != 0 {
		t.Errorf("with a status: got %+v, want 0", got)
	}
	if err := g.CheckRow(rowOf(calls)); err == nil || !strings.Contains(err.Error(), "language: Python") {
		t.Errorf("calls with a command: got %v, want a refusal", err)
	}
	missing := newGrader(t, func(o *Options) { o.Command = []string{"no-such-interpreter", "program"} })
	if err := missing.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-interpreter") {
		t.Errorf("a command that does not exist: got %v", err)
	}
}

// TestExpectedOutputStaysOutside runs a program that looks for the expected output in everything that it can reach.
func TestExpectedOutputStaysOutside(t *testing.T) {
	g := newGrader(t, nil)
	const secret = "8675309"
	// The program has the digits in reverse order, so that it does not find itself.
	look := `
import gc, glob, os, sys
def seen():
    texts = [str(o) for o in gc.get_objects() if isinstance(o, (dict, list, tuple))]
    texts += sys.argv + list(os.environ.values())
    for path in glob.glob("*") + ["/proc/self/cmdline", "/proc/self/environ"]:
        texts.append(open(path, errors="replace").read())
    return any("9035768" in text[::-1] for text in texts)
def answer():
    return int("9035768"[::-1]) if seen() else 0
`
	tests := fmt.Sprintf(`{"fn_name": "find", "inputs": ["1"], "outputs": ["%s"]}`, secret)
	if got := grade(t, g, rowOf(tests), code(look+"def find(given): return answer()")); got.Reward != 0 {
		t.Errorf("a call has found the expected output: %+v", got)
	}
	tests = fmt.Sprintf(`[{"input": "1", "output": "%s"}]`, secret)
	if got := grade(t, g, rowOf(tests), code(look+"print(answer())")); got.Reward != 0 {
		t.Errorf("a script has found the expected output: %+v", got)
	}
	tests = fmt.Sprintf(`[{"input": "%s", "output": "%s"}]`, secret, secret)
	if got := grade(t, g, rowOf(tests), code(look+"given = input()\nprint(answer())")); got.Reward != 1 {
		t.Errorf("a script has not found its own input: %+v", got)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
)

// TestCodeThatCannotStart starts code with each fault that a start can detect, and checks the fault and its line.
func TestCodeThatCannotStart(t *testing.T) {
	h := startRunner(t)
	c := h.dial(t)
	limits := hostileLimits
	hanging := limits
	hanging.StartSeconds = 2
	line := func(number int, text string) *protocol.Line {
		return &protocol.Line{File: "user_code.py", Number: number, Text: text}
	}
	cases := map[string]struct {
		code, module string
		name         string
		limits       *protocol.Limits
		want         protocol.Code
		line         *protocol.Line
		text         string // in the texts of the error
		stderr       string // in what was printed
		limit        string
		exit         int
	}{
		"a syntax error": {
			code: "x = 1\ndef reward(row reply):\n    return 1\n",
			want: protocol.CodeSyntaxError, line: line(2, "def reward(row reply):"), text: "SyntaxError",
		},
		"an import that fails": {
			code: "print('loading')\nimport no_such_package\n",
			want: protocol.CodeImportError, line: line(2, "import no_such_package"), text: "ModuleNotFoundError",
			stderr: "loading",
		},
		"a module that does not exist": {module: "no_such_module", want: protocol.CodeImportError,
			text: "ModuleNotFoundError"},
		"an exception at import": {
			code: "def f():\n    return 1 / 0\nf()\n",
			want: protocol.CodeImportError, line: line(2, "return 1 / 0"), text: "ZeroDivisionError: division by zero",
		},
		"sys.exit at import": {
			code: "import sys\nsys.exit(3)\n", want: protocol.CodeImportError, line: line(2, "sys.exit(3)"),
			text: "SystemExit: 3",
		},
		"no function": {code: "def score(row, reply): return 1\n", want: protocol.CodeMissingFunction,
			text: "reward or rewards or episode"},
		"no function of the name": {code: "def reward(row, reply): return 1\n", name: "score",
			want: protocol.CodeMissingFunction, text: "score"},
		"a name of no function": {code: "reward = 3\n", name: "reward", want: protocol.CodeMissingFunction},
		"too few arguments": {
			code: "def reward(row):\n    return 1\n", want: protocol.CodeWrongSignature, line: line(1, "def reward(row):"),
			text: "reward(row, reply)",
		},
		"too many arguments": {code: "def reward(row, reply, seed): return 1\n", want: protocol.CodeWrongSignature},
		"an episode without async": {
			code: "def episode(row, policy, seed):\n    return 1\n", want: protocol.CodeWrongSignature, text: "async def",
		},
		"a class without step": {
			code: "class Environment:\n    def start(self, row, seed): return 'x'\n", want: protocol.CodeMissingFunction,
			text: "step",
		},
		"os._exit at import": {
			code: "import os, sys\nprint('goodbye', file=sys.stderr)\nos._exit(5)\n", want: protocol.CodeDied, stderr: "goodbye",
			exit: 5,
		},
		"an import without end": {
			code: "print('waiting')\nimport time\ntime.sleep(1000)\n", limits: &hanging,
			want: protocol.CodeStartTimeout, stderr: "waiting", limit: "startSeconds",
		},
		"output without end at import": {code: "while True: print('x' * 1000)\n", want: protocol.CodeLimit,
			limit: "outputBytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := protocol.Spec{Limits: limits}
			if tc.limits != nil {
				spec.Limits = *tc.limits
			}
			_, err := tryStart(t, c, "program", python.Function{Code: tc.code, Module: tc.module, Name: tc.name}, spec)
			failure := checkFault(t, err, fault{code: tc.want, limit: tc.limit, exit: tc.exit, text: tc.text})
			if diff := cmp.Diff(tc.line, failure.Err.Line); tc.line != nil && diff != "" {
				t.Errorf("the line (-want +got):\n%s", diff)
			}
			if !strings.Contains(failure.Evidence.Stderr, tc.stderr) {
				t.Errorf("got %q printed, want %q in it", failure.Evidence.Stderr, tc.stderr)
			}
		})
	}
	if result, err := call(t, start(t, c, "program", python.Function{Code: "def reward(row, reply): return 0.5\n"},
		protocol.Spec{}), nil, ""); err != nil {
		t.Errorf("after all: got %s and %s, want a result", result.Value, describe(err))
	}
}

// TestCommandsThatCannotRun starts commands that are no programs.
func TestCommandsThatCannotRun(t *testing.T) {
	c := startRunner(t).dial(t)
	cases := map[string]struct {
		spec protocol.Spec
		want fault
	}{
		"no such command": {protocol.Spec{Command: []string{"no-such-command"}},
			fault{code: protocol.CodeStartFailed, text: "not found"}},
		"no such file": {protocol.Spec{Command: []string{"/no/such/file"}},
			fault{code: protocol.CodeStartFailed, text: "no such file"}},
		"no program": {protocol.Spec{Command: []string{"/etc/passwd"}},
			fault{code: protocol.CodeStartFailed, text: "permission denied"}},
		"a program that says so": {protocol.Spec{Command: []string{"/bin/echo", "hello"}},
			fault{code: protocol.CodeProtocol, breach: protocol.CodeBadLine}},
		"a program that ends": {protocol.Spec{Command: []string{"/bin/false"}}, fault{code: protocol.CodeDied, exit: 1}},
		"a program that closes its output and ends": {protocol.Spec{Command: []string{"/bin/sh", "-c",
			"exec 1>&-; sleep 0.5; exit 4"}}, fault{code: protocol.CodeDied, exit: 4}},
		"a program that closes its output and stays": {protocol.Spec{Command: []string{"/bin/sh", "-c",
			"exec 1>&-; sleep 60"}}, fault{code: protocol.CodeProtocol, breach: protocol.CodeBadLine}},
		"no command": {protocol.Spec{}, fault{code: protocol.CodeBadRequest}},
		"a file outside": {protocol.Spec{Command: []string{"/bin/true"}, Files: map[string]string{"../x": ""}},
			fault{code: protocol.CodeBadRequest}},
		"a negative limit": {protocol.Spec{Command: []string{"/bin/true"}, Limits: protocol.Limits{Processes: -1}},
			fault{code: protocol.CodeBadRequest}},
		"CPU of shared processes": {protocol.Spec{Command: []string{"/bin/true"}, Concurrency: 2,
			Limits: protocol.Limits{CPUSeconds: 1}}, fault{code: protocol.CodeBadRequest}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := c.Start(ctx, "program", tc.spec)
			var failure *client.Failure
			if errors.As(err, &failure) && failure.Evidence.Breach != "" && failure.Evidence.Signal == "" {
				failure.Evidence.Exit = nil // It may have ended by itself, or been killed.
			}
			checkFault(t, err, tc.want)
		})
	}
}

// TestEnvironmentOfPrograms checks which variables of the runner's own environment a program has.
func TestEnvironmentOfPrograms(t *testing.T) {
	h := startRunner(t)
	if !h.first {
		t.Skip("the runner has the environment of the test")
	}
	const code = `
import os
def reward(row, reply):
    value = os.environ.get("RUNNER_SECRET")
    return {"reward": 0, "seen": value == "of-process-1", "replaced": value == "own"}
`
	cases := map[string]struct {
		base protocol.Spec
		want string
	}{
		"its own alone":      {protocol.Spec{}, `{"replaced":0,"seen":0}`},
		"that of the runner": {protocol.Spec{InheritEnv: true}, `{"replaced":0,"seen":1}`},
		"replaced by its own": {protocol.Spec{InheritEnv: true, Env: map[string]string{"RUNNER_SECRET": "own"}},
			`{"replaced":1,"seen":0}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := start(t, h.dial(t), "reward", python.Function{Code: code}, tc.base)
			result, err := call(t, p, nil, "")
			if err != nil {
				t.Fatal(describe(err))
			}
			var got struct{ Metrics map[string]int }
			if err := json.Unmarshal(result.Value, &got); err != nil {
				t.Fatal(err)
			}
			if text, _ := json.Marshal(got.Metrics); string(text) != tc.want {
				t.Errorf("got %s, want %s", text, tc.want)
			}
		})
	}
}

// TestPythonPath checks that functions find the modules of --python-path before the modules of their own PYTHONPATH.
func TestPythonPath(t *testing.T) {
	packages, others := moduleDir(t, "packed", "of packages"), moduleDir(t, "other", "of PYTHONPATH")
	if err := os.WriteFile(filepath.Join(others, "packed.py"), []byte("VALUE = 'hidden'"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := tryRunner(t, false, "", "--python-path", packages)
	if h == nil {
		t.Fatal("the runner does not start")
	}
	const code = `
import other, packed
def reward(row, reply):
    return {"reward": 0, "packed": packed.VALUE == "of packages", "other": other.VALUE == "of PYTHONPATH"}
`
	p := start(t, h.dial(t), "reward", python.Function{Code: code},
		protocol.Spec{InheritEnv: true, Env: map[string]string{"PYTHONPATH": others}})
	result, err := call(t, p, nil, "")
	if err != nil {
		t.Fatal(describe(err))
	}
	var got struct{ Metrics map[string]int }
	if err := json.Unmarshal(result.Value, &got); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(got.Metrics); string(text) != `{"other":1,"packed":1}` {
		t.Errorf("got %s, want both modules", text)
	}
}

// moduleDir makes a directory with a Python module.
func moduleDir(t *testing.T, name, value string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name+".py"), []byte("VALUE = '"+value+"'"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package codetests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/mathverify"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// TestMathVerify compares answers with the real package in a sandbox.
func TestMathVerify(t *testing.T) {
	venv, err := exec.Command("../conformance/venv", "code-tests").Output()
	if err != nil {
		t.Fatalf("making the environment: %v", err)
	}
	bin := filepath.Join(strings.TrimSpace(string(venv)), "bin")
	real, err := filepath.EvalSymlinks(filepath.Join(bin, "python3"))
	if err != nil {
		t.Fatal(err)
	}
	host := &pythonreward.Host{Socket: startRunner(t), Interpreter: filepath.Join(bin, "python3"), Env: map[string]string{
		"PATH": bin + ":" + filepath.Dir(real) + ":/usr/bin:/bin",
	}}
	t.Cleanup(host.Close)
	g, err := mathverify.New(host, 1, isolation.Process)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ answer, text, want string }{
		"a fraction":           {`\frac{1}{2}`, `so it is \boxed{0.5}`, verify.MetricCorrect},
		"another order":        {"x + 1", `$1 + x$`, verify.MetricCorrect},
		"a set":                {`\{1, 2\}`, `\boxed{\{2, 1\}}`, verify.MetricCorrect},
		"wrong":                {"3", `\boxed{4}`, verify.MetricWrong},
		"nothing":              {"3", "I do not know", verify.MetricNoAnswer},
		"an answer in a box":   {`\boxed{12}`, `The answer is 12.`, verify.MetricCorrect},
		"what would be called": {"3", `\boxed{__import__('os')._exit(0)}`, verify.MetricWrong},
	}
	for name, tc := range cases {
		reply := environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: tc.text}}
		score, err := g.Grade(t.Context(), dataset.Row{Answer: tc.answer}, reply)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if score.Metrics[tc.want] != 1 {
			t.Errorf("%s: got %v, want %s", name, score.Metrics, tc.want)
		}
	}
	var fault *environment.Fault
	if _, err := g.Grade(t.Context(), dataset.Row{}, environment.Reply{}); !errors.As(err, &fault) || !fault.Permanent {
		t.Errorf("a row without an answer: got %v, want a permanent fault", err)
	}
}

// startRunner starts a runner and returns its socket.
func startRunner(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tests") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	program, socket := filepath.Join(dir, "runner"), filepath.Join(dir, "runner.sock")
	build := exec.Command("go", "build", "-o", program, "../../cmd/runner")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the runner: %v\n%s", err, text)
	}
	process := exec.Command(program, "--socket", socket, "--scratch", filepath.Join(dir, "scratch"))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		os.RemoveAll(dir)
	})
	return socket
}

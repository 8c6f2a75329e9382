// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandboxtools

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
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

// bench is a runner with a backend whose tools it runs.
type bench struct {
	dir     string
	process *exec.Cmd
	backend *Backend
}

func (b *bench) start(t *testing.T) {
	t.Helper()
	b.process = exec.Command(runner, "--socket", filepath.Join(b.dir, "runner.sock"), "--scratch",
		filepath.Join(b.dir, "scratch"))
	if err := b.process.Start(); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) kill() {
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no program can run")
	}
	dir, err := os.MkdirTemp("", "tools") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir}
	b.start(t)
	host := &pythonreward.Host{Socket: filepath.Join(dir, "runner.sock"), InheritEnv: true, Wait: true}
	t.Cleanup(func() {
		host.Close()
		b.kill()
		os.RemoveAll(dir)
	})
	program, err := NewProgram(host, 2, isolation.Process)
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := dataset.NewArithmetic(9)
	if err != nil {
		t.Fatal(err)
	}
	b.backend = New(tooluse.NewLocal(rows, verify.ExactMatch{}), program, []Tool{{"py", Python}, {"sh", Shell}})
	return b
}

func (b *bench) open(t *testing.T) tooluse.Session {
	t.Helper()
	splits, err := b.backend.Splits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.backend.Open(t.Context(), environment.Task{Split: splits[0].Name, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

func use(t *testing.T, s tooluse.Session, tool, text string) tooluse.Result {
	t.Helper()
	name := map[string]string{"py": "code", "sh": "command"}[tool]
	arguments, err := json.Marshal(map[string]string{name: text})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Call(t.Context(), chat.ToolCall{Name: tool, Arguments: string(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestTools(t *testing.T) {
	b := newBench(t)
	s := b.open(t)
	steps := []struct{ tool, text, want string }{
		{"py", "x = 20", ""},
		{"py", "print('a')\nx * 2 + 2", "a\n42\n"},
		{"py", "1 / 0", "ZeroDivisionError: division by zero"},
		{"py", "def", "SyntaxError"},
		{"py", "x", "20\n"},
		{"py", "open('f', 'w').write('hello')", "5\n"},
		{"sh", "cat f; pwd >/dev/null; exit 3", "hello\nexit status 3\n"},
		{"py", "import socket; socket.socket()", "PermissionError"},
		{"py", "print('x' * 100000)", "[...]"},
		{"py", "import sys; sys.exit(4)", "SystemExit: 4"},
		{"py", "import os; os._exit(3)", "The session has ended; the next call begins another."},
		{"py", "x", "NameError"},
		{"py", "x = bytearray(1 << 40)", "MemoryError"},
	}
	for _, step := range steps {
		got := use(t, s, step.tool, step.text)
		if !strings.Contains(got.Text, step.want) || step.want == "" && got.Text != "" || got.Invalid {
			t.Errorf("%s %q: got %.300q, want %q", step.tool, step.text, got.Text, step.want)
		}
		if len(got.Text) > 20000 {
			t.Errorf("%s %q: the result has %d bytes", step.tool, step.text, len(got.Text))
		}
	}
	for name, call := range map[string]chat.ToolCall{
		"another tool": {Name: "calculator", Arguments: "{}"}, "no argument": {Name: "py", Arguments: "{}"},
		"no object": {Name: "py", Arguments: "1"}, "no text": {Name: "py", Arguments: `{"code": 1}`},
	} {
		if got, err := s.Call(t.Context(), call); err != nil || !got.Invalid {
			t.Errorf("%s: got %+v and %v, want an invalid call", name, got, err)
		}
	}
}

// TestEpisodesAreApart checks that an episode finds nothing of another episode, neither during it nor after it.
func TestEpisodesAreApart(t *testing.T) {
	b := newBench(t)
	first := b.open(t)
	use(t, first, "py", "secret = 1\nimport builtins\nbuiltins.trap = 1\nopen('secret', 'w').close()")
	second := b.open(t)
	for _, code := range []string{"secret", "trap", "open('secret')"} {
		if got := use(t, second, "py", code); !strings.Contains(got.Text, "Error") {
			t.Errorf("%s during the other episode: got %q", code, got.Text)
		}
	}
	first.Close(t.Context())
	second.Close(t.Context())
	third := b.open(t)
	if got := use(t, third, "py", "trap"); !strings.Contains(got.Text, "NameError") {
		t.Errorf("after the other episode: got %q", got.Text)
	}
	if got := use(t, third, "sh", "ls"); got.Text != driverFile+"\n" {
		t.Errorf("the directory has %q", got.Text)
	}
}

// TestSessionIsBegunAgain kills the container: the session still has its variables afterwards.
func TestSessionIsBegunAgain(t *testing.T) {
	b := newBench(t)
	s := b.open(t)
	use(t, s, "py", "import random\nx = [random.random()]")
	want := use(t, s, "py", "x")
	b.kill()
	b.start(t)
	if got := use(t, s, "py", "x"); got.Text != want.Text || got.Text == "" {
		t.Errorf("got %q, want %q", got.Text, want.Text)
	}
}

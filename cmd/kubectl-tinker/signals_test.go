// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asPlugin names the variable that makes the test binary run as the plugin.
const asPlugin = "KUBECTL_TINKER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
	}
	os.Exit(m.Run())
}

// terminal returns both ends of a pseudo-terminal.
func terminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 45, Col: 100}); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

// kubeconfig writes a file that names a cluster with one run.
func kubeconfig(t *testing.T) string {
	t.Helper()
	const list = `{"apiVersion": "rl.tinker-operator.dev/v1alpha1", "kind": "TrainingRunList", "items": [
		{"apiVersion": "rl.tinker-operator.dev/v1alpha1", "kind": "TrainingRun", "metadata": {"name": "arithmetic",
		"namespace": "default"}, "spec": {"model": {"name": "m"}}, "status": {"state": "Training"}}]}`
	const resources = `{"kind": "APIResourceList", "groupVersion": "rl.tinker-operator.dev/v1alpha1", "resources": [
		{"name": "trainingruns", "singularName": "trainingrun", "namespaced": true, "kind": "TrainingRun",
		"verbs": ["get", "list"]}]}`
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := list
		if strings.HasSuffix(r.URL.Path, "/v1alpha1") {
			answer = resources
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(cluster.Close)
	name := filepath.Join(t.TempDir(), "config")
	data := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u", "user": {}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, cluster.URL)
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// shown collects the output of a program.
type shown struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(p)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.String()
}

// TestSignalsEndTop sends signals to a live screen: one ends it, and so do two at once, even if the second arrives
// while the first is handled.
func TestSignalsEndTop(t *testing.T) {
	const longest = 5 * time.Minute
	for name, signals := range map[string][]syscall.Signal{
		"one SIGINT": {syscall.SIGINT}, "two SIGINTs": {syscall.SIGINT, syscall.SIGINT},
		"two SIGTERMs": {syscall.SIGTERM, syscall.SIGTERM}, "both": {syscall.SIGTERM, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, program := terminal(t)
			command := exec.CommandContext(t.Context(), os.Args[0], "top")
			command.Env = append(os.Environ(), asPlugin+"=1", "KUBECONFIG="+kubeconfig(t), "TERM=xterm")
			command.Stdin, command.Stdout, command.Stderr = program, program, program
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			var screen shown
			go func() { _, _ = io.Copy(&screen, user) }()
			for begin := time.Now(); !strings.Contains(screen.String(), "arithmetic"); time.Sleep(10 * time.Millisecond) {
				if time.Since(begin) > longest {
					_ = command.Process.Kill()
					t.Fatalf("the screen shows no run: %q", screen.String())
				}
			}
			for _, signal := range signals {
				if err := command.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()
			select {
			case <-ended:
			case <-time.After(longest):
				_ = command.Process.Kill()
				t.Errorf("kubectl tinker top runs %s after %v", longest, signals)
			}
		})
	}
}

// TestReaderThatEndsLeavesNoFiles runs a trial whose output nobody reads any more, as with `| head -1`: the trial
// removes its folder, which has the values of Secrets.
func TestReaderThatEndsLeavesNoFiles(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), os.Args[0], "try", "-f", "../../config/samples/arithmetic.yaml",
		"--episodes", "64", "-o", "plain")
	command.Env = append(os.Environ(), asPlugin+"=1", "TMPDIR="+folder)
	command.Stdout = writer
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writer.Close(), reader.Close()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the trial succeeds, although nobody has read its result")
		}
	case <-time.After(10 * time.Minute):
		_ = command.Process.Kill()
		t.Fatal("the trial runs 10 minutes after its reader ended")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the trial leaves %v (%v)", left, err)
	}
}

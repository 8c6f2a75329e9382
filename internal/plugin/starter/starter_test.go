// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package starter_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/starter"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
	"github.com/tinker-operator/tinker-operator/internal/runner/command"
)

// TestMain is the runner that a trial starts, or runs the tests.
func TestMain(m *testing.M) {
	if command.IsRunner(os.Args) {
		os.Exit(command.Main(os.Args[1:], os.Getenv))
	}
	os.Exit(m.Run())
}

func call(ctx context.Context, of func(cli.IO) *cobra.Command, args ...string) (printed string, err error) {
	var out bytes.Buffer
	made := of(cli.IO{Getenv: os.Getenv, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Now: time.Now})
	made.SilenceErrors, made.SilenceUsage = true, true
	made.SetArgs(args)
	err = made.ExecuteContext(ctx)
	return out.String(), err
}

// listed returns the names of the files in a folder.
func listed(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// TestInitWritesWhatWorks writes an environment, runs its tests, and trains a step with its manifest.
func TestInitWritesWhatWorks(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here: no function of a user can run")
	}
	dir := filepath.Join(t.TempDir(), "own-sums")
	printed, err := call(t.Context(), starter.New, "init", dir)
	if err != nil || !strings.Contains(printed, "environment own-sums") {
		t.Fatalf("got %v and %q, want the environment own-sums", err, printed)
	}
	want := []string{"environment.yaml", "reward.py", "tasks.jsonl", "test_reward.py"}
	if diff := cmp.Diff(want, listed(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	tests := exec.CommandContext(t.Context(), python, "-m", "unittest")
	tests.Dir = dir
	if text, err := tests.CombinedOutput(); err != nil || !strings.Contains(string(text), "Ran 3 tests") {
		t.Errorf("the tests of the environment: %v\n%s", err, text)
	}
	printed, err = call(t.Context(), try.New, "-f", filepath.Join(dir, "environment.yaml"), "--data", "own-sums="+dir,
		"--steps", "1")
	if err != nil || !strings.Contains(printed, "metrics correct=") || !strings.Contains(printed, "test=16 train=64") ||
		!strings.Contains(printed, "a right answer earns 1.1") {
		t.Errorf("trying the environment: %v\n%s", err, printed)
	}
}

// TestInitKeepsFiles checks that init changes no folder that has one of the files, and refuses names that Kubernetes
// refuses.
func TestInitKeepsFiles(t *testing.T) {
	full, named := filepath.Join(t.TempDir(), "full"), filepath.Join(t.TempDir(), "Own_Sums")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "reward.py"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a file that exists":      {[]string{full}, "reward.py exists"},
		"a folder's name":         {[]string{named}, "Give another one with --name"},
		"no folder":               {nil, "give one folder"},
		"a name with a full stop": {[]string{named, "--name", "a.b"}, `"a.b" cannot be the name`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t.Context(), starter.New, slices.Concat([]string{"init"}, tc.args)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"reward.py"}, listed(t, full)); diff != "" {
		t.Errorf("files of the folder (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(named); err == nil {
		t.Errorf("%s has been made", named)
	}
	if _, err := call(t.Context(), starter.New, "init", named, "--name", "own-sums"); err != nil {
		t.Error(err)
	}
}

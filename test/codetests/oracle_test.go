// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package codetests

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/codetests"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// cookbook is the package whose grader is the oracle.
const cookbook = "tinker_cookbook==0.6.1"

// differences are the programs that the two graders judge differently, and whether reward.tests passes them. A comment
// says what differs in the cookbook's grader; docs/code-tests.md has the reasons.
var differences = map[string]bool{
	"script: os._exit":                false, // it ends the grader's own process
	"script: exit":                    true,  // exit is removed
	"script: standard input as bytes": true,  // standard input is a text
	"call: os._exit":                  false,
	"call: frames of a grader":        false, // the expected output is in the program's process
	"call: the first alone":           false, // the first of several values is enough
	"call: tuples within a list":      true,  // a tuple equals a list only at the top
}

// TestOracle compares the graders on all programs, and requires exactly the documented differences.
func TestOracle(t *testing.T) {
	all := programs()
	if len(all) < 300 {
		t.Fatalf("got %d programs, want 300", len(all))
	}
	theirs, ours := oracle(t, all), grades(t, all)
	found := map[string]bool{}
	count, agree := map[string]int{}, 0
	for i, p := range all {
		if theirs[i] == ours[i] {
			agree++
			continue
		}
		if before, ok := found[p.variant]; ok && before != ours[i] {
			t.Errorf("%s: some programs pass here alone, and some there alone", p.variant)
		}
		found[p.variant] = ours[i]
		count[p.variant]++
		if _, known := differences[p.variant]; !known {
			t.Errorf("%s: passes there %v, here %v:\n%s\n%v", p.variant, theirs[i], ours[i], p.Reply, p.Tests)
		}
	}
	if diff := cmp.Diff(differences, found); diff != "" {
		t.Errorf("differences (-documented +found):\n%s", diff)
	}
	t.Logf("%d of %d programs are judged alike; the others: %v", agree, len(all), count)
}

// oracle returns the verdicts of the cookbook's grader.
func oracle(t *testing.T, all []program) []bool {
	t.Helper()
	venv, err := exec.Command("../conformance/venv", "code-tests").Output()
	if err != nil {
		t.Fatalf("making the environment: %v", err)
	}
	python := filepath.Join(strings.TrimSpace(string(venv)), "bin", "python")
	folder := filepath.Join(strings.TrimSpace(string(venv)), "cookbook")
	if _, err := os.Stat(folder); err != nil { // without its dependencies: the grader needs none of them
		install := exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--target",
			folder, cookbook)
		if text, err := install.CombinedOutput(); err != nil {
			t.Fatalf("installing %s: %v\n%s", cookbook, err, text)
		}
	}
	var lines bytes.Buffer
	for _, p := range all {
		line, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	command := exec.Command(python, "oracle.py", folder)
	command.Stdin, command.Stderr = &lines, os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("running the oracle: %v", err)
	}
	var verdicts []bool
	for line := range strings.Lines(string(output)) {
		verdicts = append(verdicts, strings.TrimSpace(line) == "true")
	}
	if len(verdicts) != len(all) {
		t.Fatalf("the oracle has judged %d of %d programs", len(verdicts), len(all))
	}
	return verdicts
}

// grades returns the verdicts of reward.tests.
func grades(t *testing.T, all []program) []bool {
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
	host := &pythonreward.Host{Socket: socket, InheritEnv: true}
	defer func() {
		host.Close()
		_ = process.Process.Kill()
		_ = process.Wait()
		os.RemoveAll(dir)
	}()
	grader, err := codetests.New(host, codetests.Options{
		Field: "tests", Timeout: time.Second, MemoryBytes: 512 << 20, Processes: 2, Minimum: isolation.Process,
	})
	if err != nil {
		t.Fatal(err)
	}
	verdicts := make([]bool, len(all))
	var working sync.WaitGroup
	places := make(chan struct{}, 4)
	for i, p := range all {
		tests, err := json.Marshal(p.Tests)
		if err != nil {
			t.Fatal(err)
		}
		working.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			row := dataset.Row{Fields: map[string]any{"tests": string(tests)}}
			reply := environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: p.Reply}}
			score, err := grader.Grade(t.Context(), row, reply)
			if err != nil {
				t.Errorf("%s: %v", p.variant, err)
			}
			verdicts[i] = score.Reward == 1
		})
	}
	working.Wait()
	return verdicts
}

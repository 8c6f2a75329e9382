// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build observe

package observe

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/wandbtest"
)

var update = flag.Bool("update", false, "write what was recorded into the files that the learner's tests read")

const wandbRecord = "../../internal/learner/tracking/testdata/wandb.txt"

// TestWandBRecord runs the official package against a recording server, and compares with the record that the learner's
// tests read.
func TestWandBRecord(t *testing.T) {
	server := wandbtest.New()
	defer server.Close()
	calls := exec.CommandContext(t.Context(), filepath.Join(venv(t, "wandb"), "bin", "python"), "wandb_calls.py",
		server.URL)
	var log strings.Builder
	calls.Stderr = &log
	version, err := calls.Output()
	if err != nil {
		t.Fatalf("calling wandb: %v\n%s", err, log.String())
	}
	t.Logf("wandb %s", version)
	events, err := wandbtest.Events(server.Requests())
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(events, "\n") + "\n"
	if *update {
		if err := os.WriteFile(wandbRecord, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(wandbRecord)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("requests of the package (-record +now):\n%s", diff)
	}
}

// venv returns the folder of the Python environment of requirements/NAME.txt.
func venv(t *testing.T, requirements string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../conformance/venv", requirements)
	command.Stderr = os.Stderr
	path, err := command.Output()
	if err != nil {
		t.Fatalf("making the environment of requirements/%s.txt: %v", requirements, err)
	}
	return strings.TrimSpace(string(path))
}

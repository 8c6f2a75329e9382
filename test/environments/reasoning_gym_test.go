// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package environments

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReasoningGymTasks checks that no task occurs twice among the indexes of a split.
func TestReasoningGymTasks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "python3", "reasoning_gym_tasks.py",
		"../../config/samples/environments/reasoning-gym/environment.py").Output()
	if err != nil {
		t.Fatalf("reasoning_gym_tasks.py: %v", err)
	}
	type tasks struct {
		Tasks    int `json:"tasks"`
		Distinct int `json:"distinct"`
		OfSplit  int `json:"of the split"`
	}
	var got struct {
		Train, Test tasks
		Alone       bool
		TooFew      string `json:"too few"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for split, want := range map[string][2]tasks{"train": {got.Train, {10000, 10000, 10000}},
		"test": {got.Test, {500, 500, 500}}} {
		if diff := cmp.Diff(want[1], want[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", split, diff)
		}
	}
	if !got.Alone || !strings.Contains(got.TooFew, "too few questions") {
		t.Errorf("one index alone has its task: %t; a family of one question says %q", got.Alone, got.TooFew)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTasksWithoutConversations scores an evaluation of four tasks that records the conversations of the first one: all
// four have results.
func TestTasksWithoutConversations(t *testing.T) {
	line := func(task int64, recorded bool, outcome string, passed *bool, reward float64) Line {
		return Line{Step: 5, Evaluation: "digest", Slot: task, Environment: "sums", Split: "test", Task: task,
			Group: "Usable", Recorded: recorded, Episode: &Episode{Outcome: outcome, Passed: passed, Reward: reward}}
	}
	step := StepOf([]Line{line(0, true, "Usable", new(true), 1), line(1, false, "Usable", new(false), 0),
		line(1, false, "Usable", new(true), 1), line(2, false, "EnvironmentFault", nil, 0),
		{Evaluation: "digest", Slot: 3, Environment: "sums", Split: "test", Task: 3, Group: "Deadline"}})
	result := func(task int64, samples, passed int, reward float64) TaskResult {
		return TaskResult{"sums", "test", task, TaskScore{samples, passed, reward, samples > 0}}
	}
	want := []TaskResult{result(0, 1, 1, 1), result(1, 2, 1, 0.5), result(2, 0, 0, 0), result(3, 0, 0, 0)}
	if diff := cmp.Diff(want, step.TaskResults()); diff != "" || len(step.Groups) != 1 {
		t.Errorf("%d groups with conversations, want 1; tasks (-want +got):\n%s", len(step.Groups), diff)
	}
	if scores := Scores(step); len(scores) != 2 || scores[TaskKey{"sums", "test", 1}].Passed != 1 {
		t.Errorf("scores %+v, want the two tasks with usable samples", scores)
	}
	step.Failed()
	if diff := cmp.Diff(want[1:], step.TaskResults()); diff != "" || len(step.Groups) != 0 {
		t.Errorf("%d groups failed, want 0 with conversations; failed tasks (-want +got):\n%s", len(step.Groups), diff)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// evaluated returns an evaluation with two samples of each task; if the number of passes of a task is negative, its
// samples are faults.
func evaluated(passes ...int) (step transcript.Step) {
	for task, passed := range passes {
		group := transcript.Group{Environment: "sums", Split: "test", Task: int64(task)}
		for i := range 2 {
			e := transcript.Episode{Outcome: "Usable", Passed: new(i < passed)}
			if i < passed {
				e.Reward = 1
			}
			if passed < 0 {
				e = transcript.Episode{Outcome: "Fault"}
			}
			group.Episodes = append(group.Episodes, e)
		}
		step.Groups = append(step.Groups, group)
	}
	return step
}

func TestTasksThatDiffer(t *testing.T) {
	a, b := transcript.Scores(evaluated(0, 1, 2, 2, 0, -1)), transcript.Scores(evaluated(2, 2, 0, 2, 1, 2, 2))
	got := differ([2]string{"a@1", "b@2"}, a, b)
	if got.Better != 3 || got.Worse != 1 || got.Shared != 5 || got.Alone != [2]int{0, 2} ||
		math.Abs(got.P-0.625) > 1e-9 {
		t.Errorf("got %+v, want 3 better and 1 worse of 5, p = 0.625", got)
	}
	var stdout bytes.Buffer
	if err := got.print(cli.IO{Stdout: &stdout}, output.Table); err != nil {
		t.Fatal(err)
	}
	want := `ENVIRONMENT   SPLIT   TASK   A@1   B@2   REWARDS
sums          test    0      0/2   2/2   0 1
sums          test    1      1/2   2/2   0.5 1
sums          test    2      2/2   0/2   1 0
sums          test    4      0/2   1/2   0 0.5

b@2 is better in 3 of 5 shared tasks and worse in 1 (sign test: p = 0.625)
0 tasks are of a@1 alone, and 2 of b@2
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// TestTasksWithoutPasses compares rewards where samples neither pass nor fail.
func TestTasksWithoutPasses(t *testing.T) {
	of := func(rewards ...float64) map[transcript.TaskKey]transcript.TaskScore {
		var group transcript.Group
		for _, reward := range rewards {
			group.Episodes = append(group.Episodes, transcript.Episode{Outcome: "Usable", Reward: reward})
		}
		return transcript.Scores(transcript.Step{Groups: []transcript.Group{group}})
	}
	got := differ([2]string{}, of(0.25, 0.75), of(0.25, 0.5))
	if got.Worse != 1 || got.Tasks[0].Scores[1].Reward != 0.375 {
		t.Errorf("got %+v, want one worse", got)
	}
}

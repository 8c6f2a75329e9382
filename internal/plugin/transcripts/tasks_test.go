// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

func TestPrintTasks(t *testing.T) {
	passed := func(yes bool, reward float64) transcript.Episode {
		return transcript.Episode{Outcome: "Usable", Passed: &yes, Reward: reward}
	}
	step := transcript.Step{Groups: []transcript.Group{
		{Environment: "sums", Split: "test", Task: 9, Episodes: []transcript.Episode{passed(true, 1), passed(false, 0.5)}},
		{Environment: "sums", Split: "test", Task: 2, Episodes: []transcript.Episode{{Outcome: "EnvironmentFault"}}},
		{Environment: "game", Split: "test", Task: 3, Episodes: []transcript.Episode{{Outcome: "Usable", Reward: -1}}},
	}}
	var out bytes.Buffer
	if err := printTasks(cli.IO{Stdout: &out}, output.Plain, step); err != nil {
		t.Fatal(err)
	}
	want := "ENVIRONMENT\tSPLIT\tTASK\tSAMPLES\tPASSED\tREWARD\n" +
		"game\ttest\t3\t1\t\t-1\nsums\ttest\t2\t0\t\t\nsums\ttest\t9\t2\t1\t0.75\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestTasksWithoutConversationsAreCounted(t *testing.T) {
	groups, tasks := make([]transcript.Group, 4), make([]transcript.TaskResult, 200)
	for want, step := range map[string]transcript.Step{
		"": {Groups: groups, Tasks: tasks[:4]},
		"4 of 200 tasks have recorded conversations: spec.artifacts.episodes All, or a larger groupsPerStep, records more; " +
			"--tasks lists the results of all": {Groups: groups, Tasks: tasks},
	} {
		if got := unrecorded(step); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := unrecorded(transcript.Step{Groups: groups}); got != "" {
		t.Errorf("a step of training: %q", got)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// taskRow is a task as JSON shows it.
type taskRow struct {
	Environment string `json:"environment"`
	Split       string `json:"split"`
	Task        int64  `json:"task"`
	transcript.TaskScore
}

// printTasks prints a line for each task. A task whose samples are all left out has no sample.
func printTasks(env cli.IO, format output.Format, step transcript.Step) error {
	scores := transcript.Scores(step)
	for _, g := range step.Groups {
		key := transcript.TaskKey{Environment: g.Environment, Split: g.Split, Task: g.Task}
		if _, scored := scores[key]; !scored {
			scores[key] = transcript.TaskScore{} // A task without a usable sample is listed as well.
		}
	}
	keys := make([]transcript.TaskKey, 0, len(scores))
	for key := range scores {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, transcript.TaskKey.Compare)
	result := output.Result{Header: []string{"ENVIRONMENT", "SPLIT", "TASK", "SAMPLES", "PASSED", "REWARD"}}
	all := []taskRow{}
	for _, key := range keys {
		score, passed, reward := scores[key], "", ""
		if score.Judged {
			passed = strconv.Itoa(score.Passed)
		}
		if score.Samples > 0 {
			reward = output.Number(&score.Reward)
		}
		result.Rows = append(result.Rows, []string{output.Safe(key.Environment), output.Safe(key.Split),
			strconv.FormatInt(key.Task, 10), strconv.Itoa(score.Samples), passed, reward})
		all = append(all, taskRow{key.Environment, key.Split, key.Task, score})
	}
	result.Value = all
	return output.Print(env, format, result)
}

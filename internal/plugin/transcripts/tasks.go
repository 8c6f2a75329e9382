// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// printTasks prints a line for each task. A task whose samples are all left out has no reward.
func printTasks(env cli.IO, format output.Format, step transcript.Step) error {
	all := step.TaskResults()
	result := output.Result{Header: []string{"ENVIRONMENT", "SPLIT", "TASK", "SAMPLES", "PASSED", "REWARD"}, Value: all}
	for _, r := range all {
		passed, reward := "", ""
		if r.Judged {
			passed = strconv.Itoa(r.Passed)
		}
		if r.Samples > 0 {
			reward = output.Number(&r.Reward)
		}
		result.Rows = append(result.Rows, []string{output.Safe(r.Environment), output.Safe(r.Split),
			strconv.FormatInt(r.Task, 10), strconv.Itoa(r.Samples), passed, reward})
	}
	return output.Print(env, format, result)
}

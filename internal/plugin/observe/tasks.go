// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// changedTask is a task in which two evaluations differ.
type changedTask struct {
	Environment string                  `json:"environment"`
	Split       string                  `json:"split"`
	Task        int64                   `json:"task"`
	Scores      [2]transcript.TaskScore `json:"scores"`
}

// difference is the difference of two evaluations.
type difference struct {
	Names [2]string `json:"names"`
	// Shared counts the tasks that both have, and Alone the tasks that only one has.
	Shared int    `json:"shared"`
	Alone  [2]int `json:"alone"`
	// Better and Worse count tasks in which the second evaluation is better, or worse.
	Better int `json:"better"`
	Worse  int `json:"worse"`
	// P is the probability of the exact two-sided sign test.
	P     float64       `json:"p"`
	Tasks []changedTask `json:"tasks"`
}

// differ compares the scores of tasks.
func differ(names [2]string, a, b map[transcript.TaskKey]transcript.TaskScore) difference {
	d := difference{Names: names, Tasks: []changedTask{}}
	for key := range b {
		if _, ok := a[key]; !ok {
			d.Alone[1]++
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(a), transcript.TaskKey.Compare) {
		after, ok := b[key]
		if !ok {
			d.Alone[0]++
			continue
		}
		d.Shared++
		before := a[key]
		switch {
		case after.Value() > before.Value():
			d.Better++
		case after.Value() < before.Value():
			d.Worse++
		default:
			continue
		}
		d.Tasks = append(d.Tasks, changedTask{key.Environment, key.Split, key.Task, [2]transcript.TaskScore{before, after}})
	}
	d.P = measure.SignTest(d.Better, d.Worse)
	return d
}

// compareTasks prints the tasks in which two evaluations differ. Each name is a run, or RUN@STEP.
func (f compareFlags) compareTasks(ctx context.Context, env cli.IO, cluster *cli.Cluster, names []string) error {
	if len(names) != 2 || f.sweep != "" || len(f.plot) > 0 {
		return cli.Misused("--tasks compares two evaluations: give two of RUN and RUN@STEP, without --sweep and --plot")
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	var all [2]map[transcript.TaskKey]transcript.TaskScore
	var shown [2]string
	for i, name := range names {
		runName, stepText, given := strings.Cut(name, "@")
		step := int64(transcripts.Newest)
		if given {
			if step, err = strconv.ParseInt(stepText, 10, 64); err != nil || step < 0 {
				return cli.Misused("%q: the step behind @ is no number", name)
			}
		}
		run, err := connection.Run(ctx, runName)
		if err != nil {
			return err
		}
		evaluation, err := transcripts.Evaluation(ctx, env, connection, run, step)
		if err != nil {
			return err
		}
		all[i], shown[i] = transcript.Scores(evaluation), fmt.Sprintf("%s@%d", run.Name, evaluation.Step)
	}
	return differ(shown, all[0], all[1]).print(env, *f.format)
}

// print prints a line for each task, and the result of the test.
func (d difference) print(env cli.IO, format output.Format) error {
	result := output.Result{Header: []string{"ENVIRONMENT", "SPLIT", "TASK", strings.ToUpper(d.Names[0]),
		strings.ToUpper(d.Names[1]), "REWARDS"}, Value: d}
	cell := func(s transcript.TaskScore) string {
		if s.Judged {
			return fmt.Sprintf("%d/%d", s.Passed, s.Samples)
		}
		return output.Number(&s.Reward)
	}
	for _, t := range d.Tasks {
		result.Rows = append(result.Rows, []string{output.Safe(t.Environment), output.Safe(t.Split),
			strconv.FormatInt(t.Task, 10), cell(t.Scores[0]), cell(t.Scores[1]),
			output.Number(&t.Scores[0].Reward) + " " + output.Number(&t.Scores[1].Reward)})
	}
	if err := output.Print(env, format, result); err != nil || format != output.Table {
		return err
	}
	fmt.Fprintf(env.Stdout, "\n%s is better in %d of %d shared tasks and worse in %d (sign test: p = %s)\n", d.Names[1],
		d.Better, d.Shared, d.Worse, output.Number(&d.P))
	if d.Alone != [2]int{} {
		fmt.Fprintf(env.Stdout, "%d tasks are of %s alone, and %d of %s\n", d.Alone[0], d.Names[0], d.Alone[1], d.Names[1])
	}
	return nil
}

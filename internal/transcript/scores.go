// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TaskKey names a task of an evaluation.
type TaskKey struct {
	Environment, Split string
	Task               int64
}

// Compare orders tasks by environment, split and number.
func (k TaskKey) Compare(other TaskKey) int {
	return cmp.Or(cmp.Compare(k.Environment, other.Environment), cmp.Compare(k.Split, other.Split),
		cmp.Compare(k.Task, other.Task))
}

// TaskScore is the score of a task's samples.
type TaskScore struct {
	// Samples counts the usable samples, and Passed counts the usable samples that pass. Reward is the mean reward of
	// the usable samples.
	Samples int     `json:"samples"`
	Passed  int     `json:"passed"`
	Reward  float64 `json:"reward"`
	// Judged says that it is known which samples pass.
	Judged bool `json:"judged,omitempty"`
}

// Value is the figure by which tasks are compared: the share of samples that pass, or the mean reward.
func (s TaskScore) Value() float64 {
	if s.Judged {
		return float64(s.Passed) / float64(s.Samples)
	}
	return s.Reward
}

// TaskResult is the result of one task in an evaluation.
type TaskResult struct {
	Environment string `json:"environment"`
	Split       string `json:"split"`
	Task        int64  `json:"task"`
	TaskScore
}

// TaskResults returns the results of all tasks of an evaluation. A task without a usable sample has no samples. For a
// step of training, it returns the results of the recorded groups.
func (s *Step) TaskResults() []TaskResult {
	if s.Tasks != nil {
		return s.Tasks
	}
	var lines []Line
	for _, g := range s.Groups {
		line := Line{Environment: g.Environment, Split: g.Split, Task: g.Task}
		lines = append(lines, line)
		for i := range g.Episodes {
			line.Episode = &g.Episodes[i]
			lines = append(lines, line)
		}
	}
	return resultsOf(lines)
}

// resultsOf returns the results of the tasks of lines, sorted by environment, split and number.
func resultsOf(lines []Line) []TaskResult {
	all := map[TaskKey]TaskScore{}
	for _, line := range lines {
		key := TaskKey{line.Environment, line.Split, line.Task}
		score := all[key]
		if e := line.Episode; e != nil && e.Outcome == rl.Usable.String() {
			score = score.with(*e)
		}
		all[key] = score
	}
	results := make([]TaskResult, 0, len(all))
	for _, key := range slices.SortedFunc(maps.Keys(all), TaskKey.Compare) {
		results = append(results, TaskResult{key.Environment, key.Split, key.Task, all[key]})
	}
	return results
}

// Scores returns the scores of the tasks of an evaluation. A task without a usable sample has none.
func Scores(evaluation Step) map[TaskKey]TaskScore {
	all := map[TaskKey]TaskScore{}
	for _, r := range evaluation.TaskResults() {
		if r.Samples > 0 {
			all[TaskKey{r.Environment, r.Split, r.Task}] = r.TaskScore
		}
	}
	return all
}

// with returns the score with a further sample.
func (s TaskScore) with(e Episode) TaskScore {
	s.Samples++
	s.Reward += (e.Reward - s.Reward) / float64(s.Samples)
	if e.Passed != nil {
		s.Judged = true
		if *e.Passed {
			s.Passed++
		}
	}
	return s
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"

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
	// Samples counts the usable samples, and Passed those that pass. Reward is the mean of their rewards.
	Samples int     `json:"samples"`
	Passed  int     `json:"passed"`
	Reward  float64 `json:"reward"`
	// Judged says that samples pass or do not.
	Judged bool `json:"-"`
}

// Value is the figure by which tasks are compared: the share of samples that pass, or the mean reward.
func (s TaskScore) Value() float64 {
	if s.Judged {
		return float64(s.Passed) / float64(s.Samples)
	}
	return s.Reward
}

// Scores returns the scores of the tasks of an evaluation. A task without a usable sample has none.
func Scores(evaluation Step) map[TaskKey]TaskScore {
	all := map[TaskKey]TaskScore{}
	for _, group := range evaluation.Groups {
		key := TaskKey{group.Environment, group.Split, group.Task}
		for _, e := range group.Episodes {
			if e.Outcome == rl.Usable.String() {
				all[key] = all[key].with(e)
			}
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

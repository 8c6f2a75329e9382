// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// EvaluationMetrics measures the groups of an evaluation: test/env/... as StepMetrics does, test/pass@k over
// all tasks and test/<environment>/pass@k for the k of passAt by environment's name, and how many tasks were
// evaluated and how many left out. pass@1 is always given; pass@k over all tasks where every environment
// has the k. A task with fewer usable samples than k does not count for pass@k.
func EvaluationMetrics(groups []rl.Group, passAt map[string][]int) map[string]float64 {
	out := environmentMetrics("test/", groups)
	maps.Copy(out, passMetrics(groups, passAt))
	tasks, failed := 0, 0
	for _, g := range groups {
		tasks++
		if len(g.UsableMembers()) == 0 {
			failed++
		}
	}
	out["test/tasks"] = float64(tasks)
	out["test/tasks_left_out"] = float64(failed)
	return out
}

func passMetrics(groups []rl.Group, passAt map[string][]int) map[string]float64 {
	environments, wanted := map[string]bool{}, map[int]int{}
	for _, g := range groups {
		environments[g.Environment] = true
	}
	rates := map[string]*average{}
	add := func(name string, g rl.Group, k int) {
		rate, ok := passAtOf(g, k)
		if !ok {
			return
		}
		if rates[name] == nil {
			rates[name] = &average{}
		}
		rates[name].add(rate)
	}
	for name := range environments {
		for k := range wantedK(passAt[name]) {
			wanted[k]++
		}
	}
	for _, g := range groups {
		for k := range wantedK(passAt[g.Environment]) {
			add(fmt.Sprintf("test/%s/pass@%d", g.Environment, k), g, k)
			if wanted[k] == len(environments) {
				add(fmt.Sprintf("test/pass@%d", k), g, k)
			}
		}
	}
	out := make(map[string]float64, len(rates))
	for name, a := range rates {
		out[name] = a.sum / float64(a.count)
	}
	return out
}

// wantedK is the set of an environment's k, 1 always among them.
func wantedK(passAt []int) map[int]bool {
	set := map[int]bool{1: true}
	for _, k := range passAt {
		set[k] = true
	}
	return set
}

// passAtOf estimates the task's pass@k from its usable samples.
func passAtOf(g rl.Group, k int) (float64, bool) {
	members, passed := g.UsableMembers(), 0
	for _, m := range members {
		if Passed(m) {
			passed++
		}
	}
	return PassAtK(len(members), passed, k)
}

// Passed reports whether an episode solved its task: whether the environment calls it correct or, where the
// environment does not say, its reward is above 0.
func Passed(m rl.Member) bool {
	if correct, ok := m.Metrics[MetricCorrect]; ok {
		return correct >= 0.5
	}
	return m.Reward > 0
}

// PassAtK estimates, without bias, the chance that at least one of k samples passes, from n samples of which
// passed did: 1 - C(n-passed, k) / C(n, k). It is undefined, and false, for fewer samples than k.
func PassAtK(n, passed, k int) (float64, bool) {
	if k < 1 || n < k || passed < 0 || passed > n {
		return 0, false
	}
	none := 1.0
	for i := range k {
		none *= float64(max(0, n-passed-i)) / float64(n-i)
	}
	return 1 - none, true
}

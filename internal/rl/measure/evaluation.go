// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Samples has the settings by which an environment is evaluated.
type Samples struct {
	// PerTask is the number of samples of each task.
	PerTask int
	// PassAt lists the k of pass@k.
	PassAt []int
}

// EvaluationMetrics measures the groups of an evaluation: test/env/... as StepMetrics does, pass@k, solved@n, and how
// many tasks were evaluated and how many left out, each as test/... over all tasks and as test/<environment>/... for
// one environment. Means over tasks have intervals of 95% confidence, <name>/ci95_low and <name>/ci95_high.
//
//   - pass@k, for the k of an environment and for 1, is the unbiased estimate; see PassAtK. A task with fewer usable
//     samples than k does not count for it.
//   - solved@n is the empirical estimate: the share of tasks that any of the n samples has solved. A task counts with
//     the usable samples that it has, and is left out if it has none.
//
// Over all tasks, only the k and the n that every environment has are measured.
func EvaluationMetrics(groups []rl.Group, environments map[string]Samples) map[string]float64 {
	out := environmentMetrics("test/", groups)
	maps.Copy(out, passMetrics(groups, environments))
	writeMeanIntervals(out, groups)
	tasks := map[string]int{"test/": 0}
	failed := map[string]int{"test/": 0}
	for _, g := range groups {
		for _, prefix := range []string{"test/", "test/" + g.Environment + "/"} {
			tasks[prefix]++
			if len(g.UsableMembers()) == 0 {
				failed[prefix]++
			}
		}
	}
	for prefix := range tasks {
		out[prefix+"tasks"], out[prefix+"tasks_left_out"] = float64(tasks[prefix]), float64(failed[prefix])
	}
	return out
}

// estimate is one way to compute a rate from a task's samples.
type estimate struct {
	name string
	// of returns the rate of a task, given the numbers of its usable and of its passed samples, and the number of
	// independent trials that the rate stands for.
	of func(usable, passed int) (rate float64, trials int, ok bool)
}

// estimatesOf lists the estimates of an environment, always with pass@1.
func estimatesOf(s Samples) []estimate {
	ks := append([]int{1}, s.PassAt...)
	slices.Sort(ks)
	var list []estimate
	for _, k := range slices.Compact(ks) {
		list = append(list, estimate{fmt.Sprintf("pass@%d", k), func(usable, passed int) (float64, int, bool) {
			rate, ok := PassAtK(usable, passed, k)
			return rate, usable / k, ok
		}})
	}
	return append(list, estimate{fmt.Sprintf("solved@%d", s.PerTask), func(usable, passed int) (float64, int, bool) {
		return float64(min(1, passed)), 1, usable > 0
	}})
}

// share is the mean rate of tasks.
type share struct {
	rates  []float64
	trials int
}

func passMetrics(groups []rl.Group, environments map[string]Samples) map[string]float64 {
	used, estimates, having := map[string]bool{}, map[string][]estimate{}, map[string]int{}
	for _, g := range groups {
		if used[g.Environment] {
			continue
		}
		used[g.Environment] = true
		estimates[g.Environment] = estimatesOf(environments[g.Environment])
		for _, e := range estimates[g.Environment] {
			having[e.name]++
		}
	}
	shares := map[string]*share{}
	add := func(name string, rate float64, trials int) {
		if shares[name] == nil {
			shares[name] = &share{}
		}
		shares[name].rates = append(shares[name].rates, rate)
		shares[name].trials += trials
	}
	for _, g := range groups {
		usable, passed := passes(g)
		for _, e := range estimates[g.Environment] {
			rate, trials, ok := e.of(usable, passed)
			if !ok {
				continue
			}
			add("test/"+g.Environment+"/"+e.name, rate, trials)
			if having[e.name] == len(used) {
				add("test/"+e.name, rate, trials)
			}
		}
	}
	out := make(map[string]float64, 3*len(shares))
	for name, s := range shares {
		sum := 0.0
		for _, rate := range s.rates {
			sum += rate
		}
		out[name] = sum / float64(len(s.rates))
		shareInterval(s.rates, s.trials).write(out, name)
	}
	return out
}

// passes counts the usable samples of a task, and the samples that passed.
func passes(g rl.Group) (usable, passed int) {
	for _, m := range g.UsableMembers() {
		usable++
		if Passed(m) {
			passed++
		}
	}
	return usable, passed
}

// Passed reports whether an episode solved its task: whether the environment calls it correct or, if the environment
// does not say, its reward is above 0.
func Passed(m rl.Member) bool {
	if correct, ok := m.Metrics[MetricCorrect]; ok {
		return correct >= 0.5
	}
	return m.Reward > 0
}

// PassAtK estimates, without bias, the chance that at least one of k samples passes, if passed of n samples did: 1 -
// C(n-passed, k) / C(n, k). If there are fewer than k samples, the chance is undefined and PassAtK returns false. (M.
// Chen et al., Evaluating large language models trained on code, arXiv:2107.03374, equation 1.)
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

// writeMeanIntervals adds the intervals of the means of rewards and of the environment's metrics.
func writeMeanIntervals(out map[string]float64, groups []rl.Group) {
	values, beyond := map[string][]average{}, map[string]bool{}
	for _, g := range groups {
		task := map[string]*average{}
		add := func(name string, v float64) {
			if !finite.Is(v) {
				return
			}
			for _, environment := range environmentsOf(g) {
				full := "test/env/" + environment + "/" + name
				if task[full] == nil {
					task[full] = &average{}
				}
				task[full].add(v)
				beyond[full] = beyond[full] || v < 0 || v > 1
			}
		}
		for _, m := range g.UsableMembers() {
			eachValue(m, add)
		}
		for name, a := range task {
			values[name] = append(values[name], *a)
		}
	}
	for name, tasks := range values {
		if bounds, ok := meanInterval(tasks, !beyond[name]); ok {
			bounds.write(out, name)
		}
	}
}

// eachNamed calls f with the metrics of an episode's environment and with the parts of its reward.
func eachNamed(m rl.Member, f func(name string, v float64)) {
	for name, v := range m.Metrics {
		f(name, v)
	}
	for name, v := range m.Parts {
		f("reward/"+name, v)
	}
}

// eachValue calls f with the rewards and metrics of an episode, under the names that StepMetrics gives their means.
func eachValue(m rl.Member, f func(name string, v float64)) {
	f(metricReward, m.Reward)
	eachNamed(m, f)
	for _, t := range m.Trajectories {
		if t.Role != "" {
			f(t.Role+"/"+metricReward, t.Reward)
		}
	}
}

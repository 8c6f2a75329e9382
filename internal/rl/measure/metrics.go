// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Metrics that an environment returns for each episode, 0 or 1, if they apply. They distinguish a wrong answer, a reply
// without an answer and a reply that the token limit cut.
const (
	// MetricCorrect means that the answer is right.
	MetricCorrect = "correct"
	// MetricAnswered means that an answer could be read from the reply.
	MetricAnswered = "answered"
	// MetricTruncated means that the token limit cut the reply.
	MetricTruncated = "truncated"
)

// metricReward is the mean of whole rewards.
const metricReward = "reward/total"

// allEnvironments is the name under which metrics of all environments together are given.
const allEnvironments = "all"

// StepMetrics measures the groups of a batch, including tombstones: env/all/... over all groups, env/<name>/... for
// each environment, env/<name>/<role>/... for each role with a name, and batch/... for the groups that were used and
// left out. Rewards and metrics are means over the episodes of usable and constant groups, before constant groups are
// dropped; a name is averaged over the episodes that have it. The shares stop/<reason> also count episodes that a limit
// left out. A mean over nothing is absent, and no value is NaN.
func StepMetrics(groups []rl.Group) map[string]float64 {
	out := environmentMetrics("", groups)
	maps.Copy(out, batchMetrics(groups))
	return out
}

// ProgressMetrics returns the progress of a run at a step; steps count from 0.
func ProgressMetrics(step, steps int64) map[string]float64 {
	return map[string]float64{
		"progress/batch":     float64(step),
		"progress/done_frac": float64(step+1) / float64(max(1, steps)),
	}
}

// Finite leaves out values that are NaN or infinite, and reports whether it found any.
func Finite(metrics map[string]float64) (kept map[string]float64, diverged bool) {
	kept = finite.Only(metrics)
	return kept, len(kept) < len(metrics)
}

// environmentsOf lists the names under which a group is measured.
func environmentsOf(g rl.Group) []string {
	if g.Environment == allEnvironments || g.Environment == "" {
		return []string{allEnvironments}
	}
	return []string{allEnvironments, g.Environment}
}

func environmentMetrics(prefix string, groups []rl.Group) map[string]float64 {
	tallies := map[string]*tally{allEnvironments: newTally()}
	for _, g := range groups {
		for _, environment := range environmentsOf(g) {
			if tallies[environment] == nil {
				tallies[environment] = newTally()
			}
			tallies[environment].add(g)
		}
	}
	out := roleMetrics(prefix, groups)
	for name, t := range tallies {
		for key, v := range t.metrics() {
			out[prefix+"env/"+name+"/"+key] = v
		}
	}
	return out
}

// outcomeMetrics are the outcomes as names of metrics spell them.
var outcomeMetrics = [...]string{
	rl.Usable: "usable", rl.BelowFloor: "below_floor", rl.Constant: "constant", rl.EnvironmentFault: "environment_fault",
	rl.JudgeFault: "judge_fault", rl.Deadline: "deadline", rl.InvalidTokens: "invalid_tokens",
}

func batchMetrics(groups []rl.Group) map[string]float64 {
	out := map[string]float64{"batch/groups": float64(len(groups))}
	for _, name := range outcomeMetrics {
		out["batch/groups_"+name] = 0
	}
	for _, g := range groups {
		if g.Outcome.IsValid() {
			out["batch/groups_"+outcomeMetrics[g.Outcome]]++
		}
		for _, m := range g.Members {
			out["batch/members"]++
			out["batch/retries"] += float64(m.Retries)
			if m.Outcome != rl.Usable {
				out["batch/members_left_out"]++
			}
		}
		out["batch/prompt_tokens"] += float64(g.PromptTokens)
		out["batch/sampled_tokens"] += float64(g.SampledTokens)
		addJudge(out, g.Judge)
	}
	return out
}

// addJudge adds the usage of judges to the metrics of a batch. A batch that called no judge lacks these metrics.
func addJudge(out map[string]float64, u rl.JudgeUsage) {
	if u == (rl.JudgeUsage{}) {
		return
	}
	out["batch/judge_calls"] += float64(u.Calls)
	out["batch/judge_errors"] += float64(u.Errors)
	out["batch/judge_unreadable"] += float64(u.Unreadable)
	out["batch/judge_prompt_tokens"] += float64(u.PromptTokens)
	out["batch/judge_sampled_tokens"] += float64(u.SampledTokens)
}

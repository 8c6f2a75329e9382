// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import "github.com/tinker-operator/tinker-operator/internal/rl"

// rowOutcomes are the names of the metrics that count unusable rows by reason.
var rowOutcomes = map[rl.Outcome]string{
	rl.NoWeight: "batch/rows_no_weight", rl.NotRendered: "batch/rows_not_rendered", rl.TooLong: "batch/rows_too_long",
	rl.Empty: "batch/rows_empty", rl.InvalidTokens: "batch/rows_refused", rl.Filtered: "batch/rows_filtered",
}

// ExampleMetrics counts the rows of a batch of a supervised run, and their tokens.
func ExampleMetrics(groups []rl.Group) map[string]float64 {
	out := map[string]float64{"batch/rows": 0, "batch/rows_left_out": 0, "batch/tokens": 0, "batch/weighted_tokens": 0}
	for _, name := range rowOutcomes {
		out[name] = 0
	}
	for _, group := range groups {
		if group.Outcome != rl.Usable {
			out["batch/rows_left_out"]++
			out[rowOutcomes[group.Outcome]]++
			continue
		}
		out["batch/rows"]++
		for _, s := range group.Members[0].Trajectories[0].Segments {
			out["batch/tokens"] += float64(len(s.Tokens))
			for _, isTarget := range s.Actions {
				if isTarget {
					out["batch/weighted_tokens"]++
				}
			}
		}
	}
	return out
}

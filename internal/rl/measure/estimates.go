// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// derived matches the metrics of an environment that describe the course of its episodes rather than their quality, and
// metrics that pass@1 repeats.
var derived = regexp.MustCompile(
	`(^|/)(stop|answer|by_group)/|(^|/)(total_\w+|\w+_per_\w+|fault_ratio|deadline_ratio)$|^(` +
		MetricCorrect + `|` + MetricAnswered + `|` + MetricTruncated + `)$`)

// Estimates selects the results of an evaluation from the metrics of an environment, the most important first: pass@k
// by k, solved@n, the reward, the rewards of roles, and the environment's own metrics by name.
func Estimates(metrics map[string]float64, environment string) []contract.Estimate {
	var list []contract.Estimate
	for _, prefix := range []string{"test/" + environment + "/", "test/env/" + environment + "/"} {
		for full, value := range metrics {
			name, ok := strings.CutPrefix(full, prefix)
			if !ok || strings.HasSuffix(name, suffixLow) || strings.HasSuffix(name, suffixHigh) || rankOf(name) == 0 {
				continue
			}
			e := contract.Estimate{Name: name, Value: value}
			low, bounded := metrics[full+suffixLow]
			if high, ok := metrics[full+suffixHigh]; ok && bounded {
				e.Low, e.High = &low, &high
			}
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b contract.Estimate) int {
		return cmp.Or(cmp.Compare(rankOf(a.Name), rankOf(b.Name)), cmp.Compare(kOf(a.Name), kOf(b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), contract.MaxEstimates)]
}

// rankOf returns the rank of a metric's kind, or 0 if the metric is not an estimate.
func rankOf(name string) int {
	switch {
	case strings.HasPrefix(name, "pass@"):
		return 1
	case strings.HasPrefix(name, "solved@"):
		return 2
	case name == metricReward:
		return 3
	case strings.HasSuffix(name, "/"+metricReward):
		return 4
	case name == "tasks" || name == "tasks_left_out" || derived.MatchString(name):
		return 0
	default:
		return 5
	}
}

// kOf returns the number in pass@k or solved@n.
func kOf(name string) int {
	_, number, _ := strings.Cut(name, "@")
	k, _ := strconv.Atoi(number)
	return k
}

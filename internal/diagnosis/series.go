// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/history"
)

// series are the rows of trained steps, and the rows of evaluations.
type series struct {
	steps, evaluations []history.Row
}

func seriesOf(rows []history.Row) series {
	var s series
	for _, row := range rows {
		if _, trained := row.Metrics[metricReward]; trained {
			s.steps = append(s.steps, row)
		}
		if row.Evaluated() {
			s.evaluations = append(s.evaluations, row)
		}
	}
	return s
}

// newest returns the newest rows, at most n.
func newest(rows []history.Row, n int) []history.Row { return rows[max(0, len(rows)-n):] }

// mean returns the mean of a metric over rows. A share that a row lacks counts as 0: no episode ended like that.
func mean(rows []history.Row, name string) float64 {
	sum := 0.0
	for _, row := range rows {
		sum += row.Metrics[name]
	}
	return sum / float64(max(1, len(rows)))
}

// all reports whether there are rows, and each of them has the metric with a value for which holds is true.
func all(rows []history.Row, name string, holds func(float64) bool) bool {
	for _, row := range rows {
		if v, ok := row.Metrics[name]; !ok || !holds(v) {
			return false
		}
	}
	return len(rows) > 0
}

// has reports whether any row has the metric.
func has(rows []history.Row, name string) bool {
	for _, row := range rows {
		if _, ok := row.Metrics[name]; ok {
			return true
		}
	}
	return false
}

// rises returns how sure it is that a metric rises over rows: the score of the Mann-Kendall test, which is normal
// with variance 1 if there is no trend (H. B. Mann, Nonparametric tests against trend, Econometrica 13, 1945). It
// corrects for equal values.
func rises(rows []history.Row, name string) float64 {
	n, sum := float64(len(rows)), 0.0
	ties := map[float64]float64{}
	for i, row := range rows {
		v := row.Metrics[name]
		ties[v]++
		for _, later := range rows[i+1:] {
			switch w := later.Metrics[name]; {
			case w > v:
				sum++
			case w < v:
				sum--
			}
		}
	}
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range ties {
		variance -= t * (t - 1) * (2*t + 5)
	}
	if variance <= 0 {
		return 0 // All values are equal.
	}
	return (sum - math.Copysign(1, sum)) / math.Sqrt(variance/18)
}

// spread estimates the standard deviation of a metric around its trend: by the median of the differences of neighbours,
// on which a single fall has no influence.
func spread(rows []history.Row, name string) float64 {
	if len(rows) < 2 {
		return 0
	}
	differences := make([]float64, len(rows)-1)
	for i := range differences {
		differences[i] = math.Abs(rows[i+1].Metrics[name] - rows[i].Metrics[name])
	}
	slices.Sort(differences)
	// The median of |x - y| of two normal values is 0.6745 times the root of 2.
	return differences[len(differences)/2] / (0.6745 * math.Sqrt2)
}

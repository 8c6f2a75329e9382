// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import "math"

// normal95 is the quantile of the normal distribution that an interval of 95% confidence has on each side.
const normal95 = 1.959963984540054

// interval is a confidence interval of 95%.
type interval struct{ low, high float64 }

// wilson is the score interval of a share p that was seen in n independent trials. It lies within 0 and 1, and is also
// of use for few trials, and if all or none of them passed (E. B. Wilson, Probable inference, the law of succession,
// and statistical inference, Journal of the American Statistical Association 22, 1927).
func wilson(p, n float64) interval {
	z2 := normal95 * normal95
	centre := (p + z2/(2*n)) / (1 + z2/n)
	half := normal95 / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return interval{low: max(0, centre-half), high: min(1, centre+half)}
}

// shareInterval is the interval of the mean of tasks' rates, each from 0 to 1 and estimated from samples. It is
// Wilson's interval with the effective number of trials, at which a plain share would have the same variance (N. Dean
// and M. Pagano, Evaluating confidence interval methods for binomial proportions in clustered surveys, Journal of
// Survey Statistics and Methodology 3, 2015). If each rate is 0 or 1, the trials are the tasks. There are at most as
// many trials as samples, since rates that agree by chance show no more.
func shareInterval(rates []float64, trials int) interval {
	tasks, sum, squares := float64(len(rates)), 0.0, 0.0
	for _, rate := range rates {
		sum += rate
	}
	p := min(1, max(0, sum/tasks))
	for _, rate := range rates {
		squares += float64((rate - p) * (rate - p))
	}
	effective := tasks
	if plain := p * (1 - p); len(rates) > 1 && plain > 0 {
		effective = max(tasks, float64(trials))
		if squares > 0 {
			effective = min(effective, max(tasks, tasks*plain/(squares/tasks)))
		}
	}
	return wilson(p, effective)
}

// meanInterval is the interval of the mean over all values of tasks, each given by the sum and the number of its
// values. It is the normal approximation with the standard error clustered by task, since the samples of one task are
// not independent of each other (E. Miller, Adding error bars to evals, arXiv:2411.00640, section 2.2), times the
// root of n/(n-1) for n tasks. There is no interval for a single task, or if no task differs from the others. If
// shares is set, the values are within 0 and 1, and so is the interval.
func meanInterval(tasks []average, shares bool) (interval, bool) {
	total, n := average{}, float64(len(tasks))
	for _, task := range tasks {
		total.sum += task.sum
		total.count += task.count
	}
	if len(tasks) < 2 || total.count == 0 {
		return interval{}, false
	}
	centre, squares := total.sum/float64(total.count), 0.0
	for _, task := range tasks {
		d := task.sum - float64(task.count)*centre
		squares += float64(d * d)
	}
	half := normal95 * math.Sqrt(squares*n/(n-1)) / float64(total.count)
	if half <= constantWithin*max(1, math.Abs(centre)) {
		return interval{}, false
	}
	bounds := interval{low: centre - half, high: centre + half}
	if shares {
		bounds = interval{low: max(0, bounds.low), high: min(1, bounds.high)}
	}
	return bounds, true
}

// constantWithin is the difference of a mean that may be due to rounding alone, relative to it or to 1.
const constantWithin = 1e-8

// The bounds of an interval have the name of the metric and one of these.
const (
	suffixLow  = "/ci95_low"
	suffixHigh = "/ci95_high"
)

func (i interval) write(out map[string]float64, name string) {
	out[name+suffixLow], out[name+suffixHigh] = i.low, i.high
}

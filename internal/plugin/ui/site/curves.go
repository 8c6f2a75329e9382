// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// curves are lines over the same x. A line has null for a missing value.
type curves struct {
	X     []float64 `json:"x"`
	Lines []line    `json:"lines"`
	// Marks are the x at which an attempt began.
	Marks []float64 `json:"marks"`
	// Forks are the x at whose checkpoints other runs begin.
	Forks []float64 `json:"forks,omitempty"`
	// Time says that x is in seconds since 1970, rather than in steps.
	Time bool `json:"time"`
}

// line is one line of a plot.
type line struct {
	// Kind selects how it is drawn: main, raw behind a smoothed one, or low and high of an interval.
	Kind string     `json:"kind"`
	Y    []*float64 `json:"y"`
}

// Suffixes of the metrics that are the ends of the interval of another metric.
const (
	suffixLow  = "/ci95_low"
	suffixHigh = "/ci95_high"
)

// curveOf returns the curve of a metric of a history. smoothing averages the curve exponentially, unless the metric
// has an interval.
func curveOf(h *history.History, metric string, smoothing float64, byTime bool) curves {
	out := curves{Time: byTime, X: []float64{}, Marks: []float64{}}
	main, low, high := line{Kind: "main"}, line{Kind: "low"}, line{Kind: "high"}
	var attempt int32
	for _, row := range h.Rows {
		x := float64(row.Step)
		if byTime {
			x = float64(row.Time)
		}
		if attempt != 0 && row.Attempt > attempt && finite(x) {
			out.Marks = append(out.Marks, x)
		}
		attempt = max(attempt, row.Attempt)
		v, ok := row.Metrics[metric]
		if !ok || byTime && row.Time == 0 {
			continue
		}
		out.X = append(out.X, x)
		main.Y = append(main.Y, known(v, true))
		value, has := row.Metrics[metric+suffixLow]
		low.Y = append(low.Y, known(value, has))
		value, has = row.Metrics[metric+suffixHigh]
		high.Y = append(high.Y, known(value, has))
	}
	isKnown := func(v *float64) bool { return v != nil }
	switch {
	case slices.ContainsFunc(low.Y, isKnown) && slices.ContainsFunc(high.Y, isKnown):
		out.Lines = []line{main, low, high} // A smoothed line would leave its interval.
	case smoothing > 0:
		out.Lines = []line{{Kind: "raw", Y: main.Y}, {Kind: "main", Y: smoothed(main.Y, smoothing)}}
	default:
		out.Lines = []line{main}
	}
	return out
}

func known(v float64, has bool) *float64 {
	if !has || !finite(v) {
		return nil
	}
	return &v
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// smoothed returns the exponential moving average of values, without a bias towards the first.
func smoothed(values []*float64, by float64) []*float64 {
	out := make([]*float64, len(values))
	sum, weight := 0.0, 0.0
	for i, v := range values {
		if v == nil {
			continue
		}
		sum, weight = by*sum+(1-by)**v, by*weight+(1-by)
		mean := sum / weight
		out[i] = &mean
	}
	return out
}

// merged returns the first line of several curves over the union of their x.
func merged(all []curves, byTime bool) curves {
	out := curves{Time: byTime, X: []float64{}, Marks: []float64{}}
	for _, c := range all {
		out.X = append(out.X, c.X...)
	}
	slices.Sort(out.X)
	out.X = slices.Compact(out.X)
	for _, c := range all {
		mainLine := c.Lines[slices.IndexFunc(c.Lines, func(l line) bool { return l.Kind == "main" })]
		y := make([]*float64, len(out.X))
		for i, x := range c.X {
			at, _ := slices.BinarySearch(out.X, x)
			y[at] = mainLine.Y[i]
		}
		out.Lines = append(out.Lines, line{Kind: "main", Y: y})
	}
	return out
}

// smoothings are the choices of how much a curve is smoothed.
var smoothings = []string{"", "0.5", "0.8", "0.9", "0.95"}

// smoothingOf returns the smoothing that a request asks for.
func smoothingOf(r *http.Request) float64 {
	v, err := strconv.ParseFloat(r.URL.Query().Get("smooth"), 64)
	if err != nil || !(v >= 0 && v < 1) {
		return 0
	}
	return v
}

// Curves that are computed from the tokens of steps.
const (
	curveTokens  = "usage/tokens"
	curveDollars = "usage/dollars"
)

// tokensOf are the metrics of a step that count its tokens.
var tokensOf = []string{"batch/prompt_tokens", "batch/sampled_tokens", "batch/tokens"}

// withUsage returns a history whose rows also have the tokens that were used up to each step, and the estimated cost
// of a run, spread over the steps by their tokens. A step that the history does not have counts with the tokens of
// the next step that it has.
func withUsage(h *history.History, dollars *float64) *history.History {
	out := &history.History{}
	sum, before := 0.0, int64(0)
	for _, row := range h.Rows {
		tokens, has := 0.0, false
		for _, name := range tokensOf {
			v, ok := row.Metrics[name]
			tokens, has = tokens+v, has || ok
		}
		if !has {
			continue
		}
		sum += tokens * float64(max(1, row.Step-before))
		before = row.Step
		row.Metrics = map[string]float64{curveTokens: sum}
		out.Rows = append(out.Rows, row)
	}
	for _, row := range out.Rows {
		if dollars != nil && sum > 0 {
			row.Metrics[curveDollars] = *dollars * row.Metrics[curveTokens] / sum
		}
	}
	return out
}

// forksAt returns the x of the steps at which other runs were forked.
func forksAt(h *history.History, steps []int64, byTime bool) []float64 {
	var all []float64
	for _, step := range steps {
		at := slices.IndexFunc(h.Rows, func(row history.Row) bool { return row.Step >= step })
		switch {
		case !byTime:
			all = append(all, float64(step))
		case at >= 0 && h.Rows[at].Time != 0:
			all = append(all, float64(h.Rows[at].Time))
		}
	}
	return all
}

func (s *Site) serveCurve(w http.ResponseWriter, r *http.Request) {
	run, err := s.run(r)
	if err != nil {
		http.Error(w, output.Safe(err.Error()), codeOf(err))
		return
	}
	h, err := s.histories.of(r.Context(), run)
	if err != nil {
		http.Error(w, output.Safe(err.Error()), codeOf(err))
		return
	}
	query := r.URL.Query()
	name, byTime := observe.FullName(query.Get("metric")), query.Get("x") == "time"
	of := h
	if name == curveTokens || name == curveDollars {
		of = withUsage(h, observe.Summarize(run, s.Now()).EstimatedUSD)
	}
	curve := curveOf(of, name, smoothingOf(r), byTime)
	curve.Forks = forksAt(h, s.forksOf(run), byTime)
	writeJSON(w, curve)
}

func writeJSON(w http.ResponseWriter, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "encoding the answer: "+output.Safe(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

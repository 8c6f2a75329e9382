// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/history"
)

// Size of a sparkline in pixels, and how many points it has at most.
const (
	sparkWidth, sparkHeight = 80, 22
	sparkPoints             = 64
)

// sparkline draws a metric of a history as a line; "" if it has fewer than two values.
func sparkline(h *history.History, metric string) template.HTML {
	steps, values := pointsOf(h, metric)
	steps, values = thinned(steps, values)
	if len(values) < 2 {
		return ""
	}
	low, high := bounds(values)
	first, last := float64(steps[0]), float64(steps[len(steps)-1])
	const margin = 2.5
	var line strings.Builder
	var x, y float64
	for i, v := range values {
		x = margin + (float64(steps[i])-first)/math.Max(1, last-first)*(sparkWidth-2*margin)
		y = sparkHeight - margin - (v-low)/(high-low)*(sparkHeight-2*margin)
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	// Only numbers are formatted into the markup.
	return template.HTML(fmt.Sprintf(`<svg class="spark" width="%d" height="%d" viewBox="0 0 %d %d" aria-hidden="true">`+
		`<polyline points="%s"/><circle cx="%.1f" cy="%.1f" r="2"/></svg>`, sparkWidth, sparkHeight, sparkWidth, sparkHeight,
		strings.TrimSpace(line.String()), x, y))
}

// bounds returns the least and the greatest value, which differ.
func bounds(values []float64) (low, high float64) {
	low, high = values[0], values[0]
	for _, v := range values {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	if high-low < 1e-12 {
		return low - 1, high + 1
	}
	return low, high
}

// pointsOf returns the steps that have a metric, and its values.
func pointsOf(h *history.History, metric string) (steps []int64, values []float64) {
	for _, row := range h.Rows {
		if v, ok := row.Metrics[metric]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			steps, values = append(steps, row.Step), append(values, v)
		}
	}
	return steps, values
}

// thinned returns at most sparkPoints means of neighbours.
func thinned(steps []int64, values []float64) ([]int64, []float64) {
	if len(values) <= sparkPoints {
		return steps, values
	}
	var fewer []int64
	var means []float64
	for i := range sparkPoints {
		from, to := i*len(values)/sparkPoints, (i+1)*len(values)/sparkPoints
		sum := 0.0
		for _, v := range values[from:to] {
			sum += v / float64(to-from)
		}
		fewer, means = append(fewer, steps[to-1]), append(means, sum)
	}
	return fewer, means
}

// bar draws a share of a whole.
func bar(share float64) template.HTML {
	const width, height = 56, 6
	if math.IsNaN(share) {
		share = 0
	}
	return template.HTML(fmt.Sprintf(`<svg class="bar" width="%d" height="%d" aria-hidden="true">`+
		`<rect class="rest" width="%d" height="%d" rx="3"/><rect class="done" width="%.1f" height="%d" rx="3"/></svg>`,
		width, height, width, height, width*math.Max(0, math.Min(1, share)), height))
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

// TestManyRuns checks that pages have a bounded size, and that the runs are listed once, however often a page is
// opened.
func TestManyRuns(t *testing.T) {
	cluster, lists, err := uitest.Crowd(t.Context(), 1000, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, cluster, uitest.Read)
	f.get(t, "/")
	for target, bound := range map[string]int{"/": 200 << 10, "/?sort=reward&from=900": 200 << 10,
		"/runs/research/run-0000": 100 << 10, "/runs/research/run-0000/sparks": 4 << 10,
		"/runs/research/run-0000/curve.json?metric=reward&smooth=0.9": 64 << 10} {
		began := time.Now()
		answer, page := f.get(t, target)
		t.Logf("%s: %s, %d bytes", target, time.Since(began).Round(time.Millisecond), len(page))
		if answer.StatusCode != http.StatusOK || len(page) > bound {
			t.Errorf("%s answers %s with %d bytes, want at most %d", target, answer.Status, len(page), bound)
		}
	}
	f.expect(t, "/", "1–100 of 1000 runs", `rel="next"`, `!rel="prev"`)
	f.expect(t, "/?from=900", "901–1000 of 1000 runs", `!rel="next"`, `rel="prev"`)
	f.expect(t, "/?from=5000", "901–1000 of 1000 runs")
	if n := lists.Load(); n != 1 {
		t.Errorf("the API server is asked for the runs %d times, want once", n)
	}
}

func TestCurves(t *testing.T) {
	h := &history.History{Rows: []history.Row{
		{Step: 1, Attempt: 1, Time: 100, Metrics: map[string]float64{"a": 1}},
		{Step: 2, Attempt: 1, Time: 200, Metrics: map[string]float64{"b": 5}},
		{Step: 3, Attempt: 2, Time: 300, Metrics: map[string]float64{"a": 3, "a/ci95_low": 2, "a/ci95_high": 4}},
	}}
	got := curveOf(h, "a", 0, false)
	if len(got.X) != 2 || got.X[1] != 3 || len(got.Lines) != 3 || got.Lines[1].Kind != "low" || got.Lines[1].Y[0] != nil ||
		*got.Lines[1].Y[1] != 2 || len(got.Marks) != 1 || got.Marks[0] != 3 {
		t.Errorf("the curve is %+v", got)
	}
	if got := curveOf(h, "a", 0.5, true); got.X[1] != 300 || got.Lines[0].Kind != "main" || *got.Lines[0].Y[1] != 3 ||
		got.Marks[0] != 300 {
		t.Errorf("the curve of an evaluation over time is %+v", got)
	}
	h.Rows[2].Metrics["b"] = 7
	if got := curveOf(h, "b", 0.5, false); got.Lines[0].Kind != "raw" || *got.Lines[0].Y[1] != 7 ||
		*got.Lines[1].Y[0] != 5 || *got.Lines[1].Y[1] <= 6 || *got.Lines[1].Y[1] >= 7 {
		t.Errorf("the smoothed curve is %+v", got)
	}
	delete(h.Rows[2].Metrics, "b")
	both := merged([]curves{curveOf(h, "a", 0, false), curveOf(h, "b", 0, false)}, false)
	if len(both.X) != 3 || len(both.Lines) != 2 || both.Lines[0].Y[1] != nil || *both.Lines[1].Y[1] != 5 {
		t.Errorf("both curves are %+v", both)
	}
	if line := string(sparkline(h, "a")); strings.Count(line, ",") != 2 {
		t.Errorf("the sparkline is %s", line)
	}
}

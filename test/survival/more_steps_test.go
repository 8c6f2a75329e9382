// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// lengthened compares a run that has 12 steps from the beginning with runs whose 6 steps are raised to 12.
type lengthened struct {
	onRows bool
	want   lengthenedOutcome
}

// lengthenedOutcome is the outcome of a run of 12 steps.
type lengthenedOutcome struct {
	adapter, lineage string
	metrics          []map[string]float64
	usage            contract.Usage
	// trained is the number of tokens that led to the last version.
	trained int64
}

// start prepares a run with the given number of steps. The evaluated steps do not depend on the number.
func (l *lengthened) start(t testing.TB, steps int64) *fixture {
	t.Helper()
	w := newFixture(t, func(f *contract.RunFile) {
		if l.onRows {
			withRows(f)
		}
		f.Fixed.Algorithm.Steps, f.Steps = 0, steps
		f.Evaluation.EverySteps, f.Evaluation.After = 3, false
	})
	if l.onRows {
		w.writeRows(sumRows(0, 200))
	} else {
		w.startWorker("w0", behavior{})
	}
	return w
}

// raise raises the steps of the next attempt to 12. It also replaces the worker, since a completed run has no workers.
func (l *lengthened) raise(w *fixture) {
	w.t.Helper()
	w.file.Steps = 12
	if !l.onRows {
		w.workers[len(w.workers)-1].kill()
		w.startWorker("w1", behavior{})
	}
}

func (l *lengthened) outcome(w *fixture, v contract.Verdict) lengthenedOutcome {
	w.t.Helper()
	w.checkSpent(v)
	newest := v.Progress.Checkpoints[0]
	if v.Progress.Step != 12 || v.Progress.Steps != 12 || newest.Step != 12 {
		w.t.Fatalf("the run ended at step %d of %d with a state of step %d, want 12", v.Progress.Step, v.Progress.Steps,
			newest.Step)
	}
	metrics, rows := w.timelessMetrics(), w.rows()
	for _, line := range metrics {
		delete(line, "progress/done_frac") // it is a fraction of the steps that the run had at that time
	}
	return lengthenedOutcome{adapter: w.archive(newest.State), lineage: v.Progress.Lineage, metrics: metrics,
		usage: v.Progress.Usage, trained: *rows[len(rows)-1].Trained}
}

// check requires that a run equals the run that had 12 steps from the beginning.
func (l *lengthened) check(w *fixture, v contract.Verdict) lengthenedOutcome {
	w.t.Helper()
	got := l.outcome(w, v)
	if got.adapter != l.want.adapter || got.lineage != l.want.lineage || got.trained != l.want.trained {
		w.t.Errorf("lineage %s, weights %s, trained tokens %d; with 12 steps from the beginning %s, %s, %d", got.lineage,
			got.adapter, got.trained, l.want.lineage, l.want.adapter, l.want.trained)
	}
	if diff := cmp.Diff(l.want.metrics, got.metrics); diff != "" {
		w.t.Errorf("metrics (-12 steps from the beginning +raised):\n%s", diff)
	}
	return got
}

// TestMoreStepsAreThoseOfARunThatHadThemFromTheBeginning raises the number of steps from 6 to 12, and checks that the
// run equals a run that had 12 steps from the beginning.
func TestMoreStepsAreThoseOfARunThatHadThemFromTheBeginning(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*lengthened{"environments": {}, "rows": {onRows: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := l.start(t, 12)
			l.want = l.outcome(w, w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
			t.Run("complete", l.testComplete)
			t.Run("while it drains", l.testDraining)
			for _, point := range learner.FaultPoints() {
				t.Run("deaths at "+point, func(t *testing.T) { l.testDeaths(t, point) })
			}
		})
	}
}

func (l *lengthened) testComplete(t *testing.T) {
	t.Parallel()
	w := l.start(t, 6)
	if v := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted); v.Progress.Step != 6 {
		t.Fatalf("the run completed at step %d, want 6", v.Progress.Step)
	}
	l.raise(w)
	got := l.check(w, w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
	// Each attempt that continues checks the state that it has loaded.
	const check = 128
	want := l.want.usage
	if more := got.usage.TrainedTokens - want.TrainedTokens; 0 <= more && more <= check {
		want.TrainedTokens = got.usage.TrainedTokens
	}
	if diff := cmp.Diff(want, got.usage); diff != "" {
		t.Errorf("usage (-12 steps from the beginning +raised):\n%s", diff)
	}
}

func (l *lengthened) testDraining(t *testing.T) {
	t.Parallel()
	w := l.start(t, 6)
	var first *attempt
	ready := make(chan struct{})
	first = w.startLearner(1, w.at("covered.sent", 4, func(context.Context, func() error, string, int64) error {
		<-ready
		first.drain()
		return nil
	}))
	close(ready)
	w.waitFor(first, contract.CauseDrained)
	l.raise(w)
	l.check(w, w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
}

// testDeaths kills the learner in the last of 6 steps, and after the raise in the seventh, or as it opens a model.
func (l *lengthened) testDeaths(t *testing.T, point string) {
	t.Parallel()
	w := l.start(t, 6)
	last, next := int64(6), int64(7)
	if strings.HasPrefix(point, "open.") {
		last, next = -1, -1
	}
	<-w.startLearner(1, w.dieAt(point, last)).done
	w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	l.raise(w)
	<-w.startLearner(3, w.dieAt(point, next)).done
	l.check(w, w.waitFor(w.startLearner(4, nil), contract.CauseCompleted))
}

// TestRaisedWithoutAnEndInBetween kills the learner of a run of 6 steps at each of its last steps, and continues with
// 12.
func TestRaisedWithoutAnEndInBetween(t *testing.T) {
	t.Parallel()
	l := &lengthened{}
	w := l.start(t, 12)
	l.want = l.outcome(w, w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	for step := int64(4); step <= 6; step++ {
		t.Run(fmt.Sprintf("step %d", step), func(t *testing.T) {
			t.Parallel()
			w := l.start(t, 6)
			<-w.startLearner(1, w.dieAt("save.submitted", step)).done
			l.raise(w)
			l.check(w, w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// fakeRows has the rows of a store; nil if the run has no store.
type fakeRows map[rl.Version]artifacts.Row

func (r fakeRows) HasStore() bool { return r != nil }

func (r fakeRows) Row(v rl.Version) (artifacts.Row, error) {
	row, ok := r[v]
	if !ok {
		return artifacts.Row{}, fs.ErrNotExist
	}
	return row, nil
}

func rowOf(step int64) artifacts.Row {
	return artifacts.Row{
		Version: at(step), Parent: at(step - 1).Lineage, Time: 1000 + step,
		Metrics: map[string]float64{"batch": float64(step - 1)},
	}
}

// chainOf returns the rows up to a step, the newest first, and a store with these rows.
func chainOf(step int64) ([]artifacts.Row, fakeRows) {
	var chain []artifacts.Row
	kept := fakeRows{}
	for s := step; s > 0; s-- {
		chain = append(chain, rowOf(s))
		kept[at(s)] = rowOf(s)
	}
	return chain, kept
}

func at(step int64) rl.Version {
	return rl.Version{Step: step, Lineage: rl.Genesis(fmt.Sprint(step))}
}

func evaluationOf(step int64) artifacts.Evaluation {
	return artifacts.Evaluation{Version: at(step), Metrics: map[string]float64{"test/x": float64(step)}}
}

// want returns the metrics of lines, by step: batches from first to before last, and evaluations of the given steps.
func want(first, last int64, evaluated ...int64) map[int64]map[string]float64 {
	lines := map[int64]map[string]float64{}
	for step := first; step < last; step++ {
		lines[step] = map[string]float64{"batch": float64(step)}
	}
	for _, step := range evaluated {
		if lines[step] == nil {
			lines[step] = map[string]float64{}
		}
		lines[step]["test/x"] = float64(step)
	}
	return lines
}

func TestSeries(t *testing.T) {
	chain, kept := chainOf(6)
	cases := map[string]struct {
		rows  fakeRows
		do    func(*series)
		after int64
		want  map[int64]map[string]float64
	}{
		"steps before their state is saved": {do: func(s *series) { s.commit(rowOf(1)) }, after: -1, want: want(0, 0)},
		"steps that were resumed from, before it is known which evaluations are outstanding": {rows: kept,
			do: func(s *series) {
				s.resume(at(6), chain)
			}, after: -1, want: want(0, 0)},
		"committed steps": {do: func(s *series) {
			s.commit(rowOf(1))
			s.commit(rowOf(2))
			s.advance(at(2), false, nil)
		}, after: -1, want: want(0, 2)},
		"steps behind one that the service has": {rows: kept, do: func(s *series) {
			s.resume(at(6), chain)
			s.advance(at(6), false, nil)
		}, after: 3, want: want(4, 6)},
		"an evaluation that has no result yet": {rows: kept, do: func(s *series) {
			s.resume(at(6), chain)
			s.advance(at(6), false, []rl.Version{at(3)})
		}, after: -1, want: want(0, 3)},
		"an evaluation that has its result": {rows: kept, do: func(s *series) {
			s.resume(at(6), chain)
			s.advance(at(6), false, []rl.Version{at(3)})
			s.evaluated(at(3), evaluationOf(3).Metrics, true)
		}, after: -1, want: want(0, 6, 3)},
		"an evaluation of another schedule": {rows: kept, do: func(s *series) {
			s.evaluated(at(3), map[string]float64{"test/y": 1}, false)
			s.resume(at(6), chain)
			s.advance(at(6), false, []rl.Version{at(3)})
		}, after: -1, want: want(0, 3)},
		"an evaluation that is lost": {rows: kept, do: func(s *series) {
			s.resume(at(6), chain)
			s.advance(at(6), false, []rl.Version{at(3)})
			s.evaluated(at(3), nil, true)
		}, after: -1, want: want(0, 6)},
		"the evaluation of the last version": {rows: kept, do: func(s *series) {
			s.resume(at(6), chain)
			s.evaluated(at(6), evaluationOf(6).Metrics, true)
			s.advance(at(6), true, nil)
		}, after: 4, want: want(5, 6, 6)},
		"a return to an earlier step": {rows: kept, do: func(s *series) {
			s.resume(at(6), chain)
			s.advance(at(6), false, nil)
			s.resume(at(4), chain[2:])
			s.advance(at(4), false, nil)
		}, after: -1, want: want(0, 4)},
		"a model that is discarded without a store": {do: func(s *series) {
			for _, row := range []int64{1, 2} {
				s.commit(rowOf(row))
			}
			s.resume(at(2), nil)
			s.commit(rowOf(3))
			s.advance(at(3), false, nil)
		}, after: -1, want: want(0, 3)},
		"a row that no longer exists": {rows: fakeRows{at(2): rowOf(2)}, do: func(s *series) {
			s.resume(at(2), chain[4:])
			s.advance(at(2), false, nil)
		}, after: -1, want: want(1, 2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSeries(tc.rows)
			tc.do(s)
			lines, _, err := s.lines(tc.after, maxLines)
			if err != nil {
				t.Fatal(err)
			}
			got, last := map[int64]map[string]float64{}, tc.after
			for _, line := range lines {
				if line.Step <= last {
					t.Errorf("step %d follows step %d", line.Step, last)
				}
				last, got[line.Step] = line.Step, line.Metrics
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeriesIsBoundedInMemory(t *testing.T) {
	for name, rows := range map[string]fakeRows{"with a store": {}, "without a store": nil} {
		t.Run(name, func(t *testing.T) {
			s := newSeries(rows)
			const steps = maxKept + 10
			for step := range int64(steps) {
				if rows != nil {
					rows[at(step+1)] = rowOf(step + 1)
				}
				s.commit(rowOf(step + 1))
			}
			s.advance(at(steps), false, nil)
			inMemory := 0
			for _, e := range s.entries {
				if e.metrics != nil {
					inMemory++
				}
			}
			if inMemory != maxKept {
				t.Errorf("%d rows are in memory, want %d", inMemory, maxKept)
			}
			lines, _, err := s.lines(-1, steps)
			if err != nil {
				t.Fatal(err)
			}
			wanted, dropped := steps, int64(0)
			if rows == nil {
				wanted, dropped = maxKept, 10
			}
			if len(lines) != wanted || s.dropped.Load() != dropped {
				t.Errorf("there are %d lines and %d were dropped, want %d and %d", len(lines), s.dropped.Load(), wanted, dropped)
			}
		})
	}
}

// fakeSink is a service that keeps steps. It fails as often as a test demands.
type fakeSink struct {
	name string

	mu    sync.Mutex
	steps []int64
	// refusals is the number of calls of Open that fail, and losses the number of calls of Write whose answer is lost.
	refusals, losses int
	outcome          *Outcome
}

func (s *fakeSink) Service() string { return s.name }

func (s *fakeSink) Open(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusals > 0 {
		s.refusals--
		return 0, &serviceError{code: problem.PermissionDenied, message: "denied"}
	}
	if len(s.steps) == 0 {
		return -1, nil
	}
	return s.steps[len(s.steps)-1], nil
}

func (s *fakeSink) Write(_ context.Context, lines []Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range lines {
		s.steps = append(s.steps, line.Step)
	}
	if s.losses > 0 {
		s.losses--
		return errors.New("the answer was lost")
	}
	return nil
}

func (s *fakeSink) Close(_ context.Context, outcome Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome = &outcome
	return nil
}

// TestTrackerSendsEachStepOnce sends steps to a service that refuses the run at first, a service that loses an answer,
// and a service that works.
func TestTrackerSendsEachStepOnce(t *testing.T) {
	sinks := []*fakeSink{{name: "a", refusals: 3}, {name: "b", losses: 1}, {name: "c"}}
	var mu sync.Mutex
	reported := map[string]bool{}
	var newest []contracttracking.Problem
	tracker := NewTracker(Config{
		Sinks: []Sink{sinks[0], sinks[1], sinks[2]}, Rows: fakeRows(nil), Logger: slog.New(slog.DiscardHandler),
		Report: func(problems []contracttracking.Problem) {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range problems {
				reported[p.Service+" "+string(p.Reason)] = true
			}
			newest = problems
		},
		Interval: time.Microsecond, Silence: time.Hour, Pause: time.Millisecond,
	})
	done := make(chan struct{})
	go func() {
		tracker.Run(t.Context())
		close(done)
	}()
	tracker.Start()
	for step := range int64(40) {
		tracker.Commit(rowOf(step + 1))
		tracker.Advance(at(step+1), step == 39, nil)
	}
	tracker.End(Completed)
	<-done
	for _, sink := range sinks {
		for i, step := range sink.steps {
			if step != int64(i) {
				t.Fatalf("service %s has the steps %v, want each once and in order", sink.name, sink.steps)
			}
		}
		if len(sink.steps) != 40 || sink.outcome == nil || *sink.outcome != Completed {
			t.Errorf("service %s has %d steps and the outcome %v", sink.name, len(sink.steps), sink.outcome)
		}
	}
	if diff := cmp.Diff(map[string]bool{
		"a Connecting": true, "b Connecting": true, "c Connecting": true, "a PermissionDenied": true,
		"b ServiceFailing": true,
	}, reported); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if len(newest) > 0 {
		t.Errorf("in the end there are the problems %v", newest)
	}
}

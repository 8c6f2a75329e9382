// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
)

// fake implements everything that an evaluator needs. A group is known as soon as its sampler weights exist.
type fake struct {
	mu       sync.Mutex
	chain    map[int64]rl.Lineage
	noStore  bool
	results  map[int64]artifacts.Evaluation
	written  []string
	scores   map[int64]float64
	demanded map[string]string
	// missing are samplers that a worker does not find, lost are versions that cannot be sampled.
	missing map[string]bool
	lost    map[int64]error
	remade  int
	covered int
	blocked bool
	// failures are the errors of Find and WriteEvaluation, one after the other.
	failures []error
	// problems are the reported problems, and demandedAtPause counts the demands between two tries.
	problems        []string
	demandedAtPause int
	// reported has the metrics of the versions that Evaluated was called with.
	reported map[int64]float64
}

func (f *fake) evaluated(step int64, metrics map[string]float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reported[step] = metrics["test/pass@1"]
}

func (f *fake) fail() error {
	if len(f.failures) == 0 {
		return nil
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	return err
}

func (f *fake) pause(ctx context.Context, _ int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.demandedAtPause += len(f.demanded)
	return ctx.Err()
}

func (f *fake) block(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, problem)
}

func (f *fake) Demand(name string, list []exchange.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.demanded[name] = list[0].Sampler
}

func (f *fake) Withdraw(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.demanded, name)
}

func (f *fake) Groups(list []exchange.Lease) ([]rl.Group, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocked || f.missing[list[0].Sampler] {
		return nil, false
	}
	var groups []rl.Group
	for _, lease := range list {
		groups = append(groups, rl.Group{Key: lease.Key, Environment: lease.Environment, SampledTokens: 3,
			Members: []rl.Member{{
				Reward: 1, Trajectories: []rl.Trajectory{{Reward: 1}}, Metrics: map[string]float64{measure.MetricCorrect: 1},
			}}})
	}
	return groups, true
}

func (f *fake) Changed() <-chan struct{} {
	changed := make(chan struct{})
	if !f.blocked {
		close(changed)
	}
	return changed
}

func (f *fake) IsMissing(sampler string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.missing[sampler]
}

func (f *fake) CoverEvaluation(exchange.Evaluation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.covered++
}

func (f *fake) Find(_ context.Context, v rl.Version) (leases.Version, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return leases.Version{Step: v.Step, Lineage: v.Lineage, Sampler: fmt.Sprintf("sampler-%d", v.Step)}, f.lost[v.Step]
}

func (f *fake) Remake(context.Context, rl.Version) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail(); err != nil {
		return "", err
	}
	f.remade++
	clear(f.missing)
	return "remade", nil
}

func (f *fake) HasStore() bool { return !f.noStore }

func (f *fake) Evaluation(v rl.Version, _ string) (artifacts.Evaluation, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	result, ok := f.results[v.Step]
	return result, ok
}

func (f *fake) WriteEvaluation(_ context.Context, result artifacts.Evaluation, _ []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := "result"
	if result.Lost != "" {
		kind = "lost"
	}
	f.written = append(f.written, fmt.Sprintf("%d %s", result.Step, kind))
	return nil
}

func (f *fake) Version(step int64) (rl.Version, bool) {
	lineage, ok := f.chain[step]
	return rl.Version{Step: step, Lineage: lineage}, ok
}

func (f *fake) Score(v rl.Version, value float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scores[v.Step] = value
}

// start returns an evaluator that has started, with a chain of the steps 0 to 10.
func start(t *testing.T, file contract.RunFile, change func(*fake)) (*Evaluator, *fake) {
	t.Helper()
	f := &fake{
		chain: map[int64]rl.Lineage{}, results: map[int64]artifacts.Evaluation{}, scores: map[int64]float64{},
		demanded: map[string]string{}, missing: map[string]bool{}, lost: map[int64]error{},
		reported: map[int64]float64{},
	}
	for step := range int64(11) {
		f.chain[step] = rl.Genesis(fmt.Sprint(step))
	}
	if change != nil {
		change(f)
	}
	e := New(Config{
		Schedule: NewSchedule(file), Attempt: 1, Metric: "test/pass@1", Table: f, Policies: f, Samplers: f, Results: f,
		Versions: f, Evaluated: f.evaluated, Blocked: f.block, Pause: f.pause, Logger: slog.New(slog.DiscardHandler),
	})
	e.Start(t.Context())
	t.Cleanup(e.Stop)
	return e, f
}

func TestEvaluator(t *testing.T) {
	refused := failure.New(problem.KeyRefused, errors.New("unauthorized"), "loading a state")
	done := artifacts.Evaluation{Metrics: map[string]float64{"test/pass@1": 0.5}}
	cases := map[string]struct {
		file    func(*contract.RunFile)
		change  func(*fake)
		saved   int64
		written []string
		remade  int
		err     error
	}{
		"versions that are due": {nil, nil, 8, []string{"0 result", "4 result",
			"8 result"}, 0, nil},
		"up to the saved one": {nil, nil, 3, []string{"0 result"}, 0, nil},
		"those without a result": {nil, func(f *fake) { f.results[4] = done }, 8,
			[]string{"0 result", "8 result"}, 0, nil},
		"those whose lineage is known": {nil, func(f *fake) { delete(f.chain, 0) }, 4, []string{"4 result"}, 0,
			nil},
		"the saved one without a store": {nil, func(f *fake) { f.noStore = true }, 8, []string{"8 result"}, 0,
			nil},
		"none without a schedule": {func(f *contract.RunFile) { f.Evaluation = nil }, nil, 8, nil, 0, nil},
		"a run that only evaluates": {func(f *contract.RunFile) { f.Fixed.Algorithm = nil }, nil, 0,
			[]string{"0 result"}, 0, nil},
		"a version that is lost": {nil, func(f *fake) { f.lost[0] = checkpoints.ErrVersionLost }, 0,
			[]string{"0 lost"}, 0, nil},
		"a refused API key": {nil, func(f *fake) { f.lost[0] = refused }, 0, nil, 0, refused},
		"a sampler that is missing": {nil, func(f *fake) { f.missing["sampler-0"] = true }, 0,
			[]string{"0 result"}, 1, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, f := start(t, evaluating(tc.file), tc.change)
			e.Begin(tc.saved)
			e.Begin(tc.saved)
			if err := e.Wait(t.Context()); !errors.Is(err, tc.err) {
				t.Errorf("Wait = %v, want %v", err, tc.err)
			}
			slices.Sort(f.written)
			if diff := cmp.Diff(tc.written, f.written); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if want := len(tc.written) + len(f.results); f.covered != want {
				t.Errorf("workers may drop the groups of %d evaluations, want %d: all that have a result", f.covered, want)
			}
			if f.remade != tc.remade {
				t.Errorf("samplers are remade %d times, want %d", f.remade, tc.remade)
			}
			if tc.err == nil && len(f.demanded) > 0 {
				t.Errorf("%v are still demanded", f.demanded)
			}
			if outstanding := len(e.Outstanding()) > 0; outstanding != (tc.err != nil) {
				t.Errorf("outstanding are %v", e.Outstanding())
			}
		})
	}
}

// TestRetryOfFailedEvaluation loses sampler weights, which can be made again only at the third try.
func TestRetryOfFailedEvaluation(t *testing.T) {
	outage := errors.New("the weight store is full")
	e, f := start(t, evaluating(nil), func(f *fake) {
		f.missing["sampler-0"], f.failures = true, []error{outage, outage}
	})
	e.Begin(0)
	if err := e.Wait(t.Context()); err != nil {
		t.Fatalf("Wait = %v, want no error", err)
	}
	if diff := cmp.Diff([]string{"0 result"}, f.written); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	problem := "evaluating step 0: " + outage.Error()
	if diff := cmp.Diff([]string{problem, problem, ""}, f.problems); diff != "" {
		t.Errorf("problems reported (-want +got):\n%s", diff)
	}
	if f.demandedAtPause > 0 {
		t.Errorf("groups are demanded between two tries, though nothing can sample them: got %v, want at most 0",
			f.demandedAtPause)
	}
}

// TestRetryAfterRefusedKey begins an evaluation again that ended because the API key was refused.
func TestRetryAfterRefusedKey(t *testing.T) {
	refused := failure.New(problem.KeyRefused, errors.New("unauthorized"), "loading a state")
	e, f := start(t, evaluating(nil), func(f *fake) { f.missing["sampler-0"], f.failures = true, []error{refused} })
	e.Begin(0)
	if err := e.Wait(t.Context()); !errors.Is(err, refused) {
		t.Fatalf("Wait = %v, want %v", err, refused)
	}
	e.Begin(0)
	if err := e.Wait(t.Context()); err != nil || len(f.written) != 1 {
		t.Errorf("Wait = %v after the key was repaired, and there are %d results, want 1", err, len(f.written))
	}
}

func TestStop(t *testing.T) {
	e, f := start(t, evaluating(nil), func(f *fake) { f.blocked = true })
	e.Begin(4)
	if got := e.Outstanding(); len(got) != 2 || got[0].Step != 0 || got[1].Step != 4 {
		t.Errorf("outstanding are %v, want the versions 0 and 4", got)
	}
	e.Stop()
	f.blocked = false
	e.Start(t.Context())
	e.Begin(4)
	if err := e.Wait(t.Context()); err != nil {
		t.Errorf("evaluations that were stopped are not begun anew: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := e.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v after its context ended", err)
	}
}

func TestRestore(t *testing.T) {
	e, f := start(t, evaluating(nil), func(f *fake) {
		for step, value := range map[int64]float64{0: 0.1, 3: 0.3, 4: 0.4, 8: 0.8} {
			f.results[step] = artifacts.Evaluation{Metrics: map[string]float64{"test/pass@1": value}}
		}
	})
	e.Restore(4)
	if diff := cmp.Diff(map[int64]float64{0: 0.1, 4: 0.4}, f.scores); diff != "" {
		t.Errorf("scores by step (-want +got):\n%s", diff)
	}
}

// TestReportOfResults expects each result to be reported once, including the results of an earlier attempt, which may
// have died before the manager received them. A version that could not be evaluated is not reported.
func TestReportOfResults(t *testing.T) {
	e, f := start(t, evaluating(nil), func(f *fake) {
		f.results[0] = artifacts.Evaluation{Metrics: map[string]float64{"test/pass@1": 0.25}}
		f.lost[4] = checkpoints.ErrVersionLost
		f.results[10] = artifacts.Evaluation{Lost: "expired"}
	})
	e.Begin(10)
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int64]float64{0: 0.25, 8: 1}, f.reported); diff != "" {
		t.Errorf("pass@1 by step (-want +got):\n%s", diff)
	}
}

func TestMeasures(t *testing.T) {
	cases := map[string]struct {
		change func(*contract.RunFile)
		metric string
		want   bool
	}{
		"a metric of evaluations":               {nil, "test/pass@1", true},
		"a metric of training":                  {nil, "env/all/reward/total", false},
		"a metric of evaluations without those": {func(f *contract.RunFile) { f.Evaluation = nil }, "test/pass@1", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := New(Config{Schedule: NewSchedule(evaluating(tc.change))}).Measures(tc.metric); got != tc.want {
				t.Errorf("Measures is %v, want %v", got, tc.want)
			}
		})
	}
}

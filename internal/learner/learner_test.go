// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestVerdictOf(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("doing something: %w", err) }
	cases := map[string]struct {
		err    error
		cause  contract.Cause
		reason string
	}{
		"the end of the run is Completed":           {nil, contract.CauseCompleted, ""},
		"a drained learner may be resumed":          {wrap(errDrained), contract.CauseDrained, ""},
		"a superseded learner is Fenced":            {wrap(errFenced), contract.CauseFenced, "Superseded"},
		"an attempt that is taken is Fenced":        {wrap(store.ErrClaimed), contract.CauseFenced, "Superseded"},
		"lost states are data that will not return": {wrap(trainee.ErrNoUsableState), contract.CauseDataRejected, "NoUsableCheckpoint"},
		"states without the optimizer are such":     {fmt.Errorf("%w: %w", trainee.ErrNoUsableState, trainee.ErrColdOptimizer), contract.CauseDataRejected, "OptimizerNotRestored"},
		"a refused key wants a person":              {wrap(&client.Error{Category: tinker.CategoryUnauthorized}), contract.CauseConfigRejected, "KeyRefused"},
		"refused settings want a person":            {wrap(&trainee.SettingsError{Err: errors.New("x")}), contract.CauseConfigRejected, "UnsupportedByEndpoint"},
		"data that are refused whole want a person": {wrap(&trainee.RejectedError{Err: errors.New("x")}), contract.CauseConfigRejected, "UnsupportedByEndpoint"},
		"an unknown model wants a person":           {unsupported(reasonModelUnknown, "x"), contract.CauseConfigRejected, "ModelUnknown"},
		"a broken model is no end":                  {wrap(client.ErrModelBroken), contract.CauseCrashed, ""},
		"a lost promise is no end":                  {wrap(&client.Error{Category: tinker.CategoryFutureLost}), contract.CauseCrashed, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdictOf(tc.err)
			if got.Cause != tc.cause || got.Reason != tc.reason {
				t.Errorf("verdict is %s (%s), want %s (%s)", got.Cause, got.Reason, tc.cause, tc.reason)
			}
			if ends := isTerminal(tc.err); ends != (tc.cause != contract.CauseCrashed) {
				t.Errorf("isTerminal is %v for %s", ends, tc.cause)
			}
		})
	}
	if !isTerminal(ErrKilled) {
		t.Error("a killed learner goes on")
	}
}

func evaluating(change func(*contract.RunFile)) contract.RunFile {
	file := contract.RunFile{
		Fixed: contract.Fixed{Algorithm: &contract.Algorithm{Steps: 10, TasksPerStep: 1, Substeps: 1}},
		Evaluation: &contract.Evaluation{EverySteps: 4, Before: true, After: true, Environments: []contract.Environment{
			{Name: "b", GroupSize: 2, Splits: []contract.Split{{Name: "test", Tasks: 2}}, PassAt: []int{1, 2}},
			{Name: "a", GroupSize: 1, Splits: []contract.Split{{Name: "x", Tasks: 1}, {Name: "y", Tasks: 1}}},
		}},
	}
	if change != nil {
		change(&file)
	}
	return file
}

func TestEvaluationIsDue(t *testing.T) {
	cases := map[string]struct {
		change func(*contract.RunFile)
		want   []int64
	}{
		"before, every four steps and after": {nil, []int64{0, 4, 8, 10}},
		"after alone":                        {func(f *contract.RunFile) { f.Evaluation.Before, f.Evaluation.EverySteps = false, 0 }, []int64{10}},
		"every five steps, the last among them": {func(f *contract.RunFile) {
			f.Evaluation.Before, f.Evaluation.After, f.Evaluation.EverySteps = false, false, 5
		}, []int64{5, 10}},
		"never":                          {func(f *contract.RunFile) { f.Evaluation = nil }, nil},
		"once, where nothing is trained": {func(f *contract.RunFile) { f.Fixed.Algorithm = nil }, []int64{0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := evaluating(tc.change)
			plan := planEvaluation(file)
			var got []int64
			for step := range int64(11) {
				if plan.isDue(step, file) {
					got = append(got, step)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvaluationLeases(t *testing.T) {
	plan := planEvaluation(evaluating(nil))
	version := leases.Version{Step: 4, Lineage: rl.Genesis("x"), Sampler: "s"}
	var got []string
	for _, lease := range plan.leases(version, 7) {
		if lease.Key.Evaluation != plan.digest || lease.Seed != 7 || lease.Sampler != "s" || lease.Key.Kind != rl.Evaluate {
			t.Errorf("lease %+v is not of the evaluation", lease)
		}
		got = append(got, fmt.Sprintf("%d %s/%s/%d of %d", lease.Key.Slot, lease.Environment, lease.Split, lease.Task, lease.GroupSize))
	}
	want := []string{"0 b/test/0 of 2", "1 b/test/1 of 2", "2 a/x/0 of 1", "3 a/y/0 of 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
	other := planEvaluation(evaluating(func(f *contract.RunFile) { f.Evaluation.Environments[0].Sampling.Temperature = 0.5 }))
	if other.digest == plan.digest {
		t.Error("another temperature is the same plan")
	}
	same := planEvaluation(evaluating(func(f *contract.RunFile) { f.Evaluation.EverySteps = 7 }))
	if same.digest != plan.digest {
		t.Error("another interval is another plan")
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(0, 0)
	s := newStatus("uid", 3, func() time.Time { return now })
	s.update(func(p *contract.Progress) { p.Step = 4 })
	now = now.Add(5 * time.Second)
	got := s.snapshot("sampling: 1 of 2 groups")
	want := contract.HeartbeatReply{
		RunUID: "uid", Attempt: 3, Sequence: 1, SecondsSinceProgress: 5, BlockedOn: "sampling: 1 of 2 groups",
		Progress: contract.Progress{Phase: contract.PhaseOpening, Step: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	s.blockOnStore("disk is gone")
	if got := s.snapshot("").BlockedOn; got != "artifacts: disk is gone" {
		t.Errorf("blocked on %q, want the store", got)
	}
	s.observe(client.Event{Category: tinker.CategoryThrottled})
	if got := s.snapshot(""); got.Upstream != "throttled" || got.BlockedOn != "endpoint: throttled" {
		t.Errorf("blocked on %q, upstream %q, want throttled", got.BlockedOn, got.Upstream)
	}
	now = now.Add(time.Second)
	s.observe(client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity})
	if got := s.snapshot("").Upstream; got != "paused_capacity" {
		t.Errorf("upstream is %q, want the newest trouble", got)
	}
	s.observe(client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity, Over: true})
	if got := s.snapshot("").Upstream; got != "throttled" {
		t.Errorf("upstream is %q, want what is not over", got)
	}
	now = now.Add(2 * troubleLasts)
	if got := s.snapshot("").Upstream; got != "" {
		t.Errorf("upstream is %q long after", got)
	}
}

func TestExposition(t *testing.T) {
	got := exposition(contract.HeartbeatReply{Attempt: 2, Progress: contract.Progress{Step: 3, Metrics: map[string]float64{"test/pass@1": 0.5}}})
	for _, line := range []string{"tinker_learner_attempt 2\n", "tinker_learner_step 3\n", "tinker_learner_metric{name=\"test/pass@1\"} 0.5\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("exposition lacks %q:\n%s", line, got)
		}
	}
}

func TestCheck(t *testing.T) {
	train := func(change func(*contract.Algorithm)) contract.RunFile {
		alg := contract.Algorithm{TasksPerStep: 1, Steps: 1, Substeps: 1, Loss: contract.Loss{Name: "ppo"}}
		change(&alg)
		return contract.RunFile{Fixed: contract.Fixed{Algorithm: &alg}}
	}
	cases := map[string]struct {
		file contract.RunFile
		want string
	}{
		"nothing to do":           {contract.RunFile{}, "NothingToDo"},
		"no steps":                {train(func(a *contract.Algorithm) { a.Steps = 0 }), "AlgorithmRejected"},
		"a lag that diverges":     {train(func(a *contract.Algorithm) { a.Lag, a.Loss.Name = 1, "importance_sampling" }), "LagRejected"},
		"a lag that is clipped":   {train(func(a *contract.Algorithm) { a.Lag = 1 }), ""},
		"an evaluation by itself": {evaluating(func(f *contract.RunFile) { f.Fixed.Algorithm = nil }), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := check(tc.file)
			var refused *unsupportedError
			if got := errors.As(err, &refused); got != (tc.want != "") || (got && refused.reason != tc.want) {
				t.Errorf("check gives %v, want the reason %q", err, tc.want)
			}
		})
	}
}

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

	"github.com/tinker-operator/tinker-operator/internal/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/learner/schedule"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/learner/weights"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/runspec"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestVerdictOf(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("doing something: %w", err) }
	cases := map[string]struct {
		err    error
		cause  heartbeat.Cause
		reason string
	}{
		"the end of the run is Completed":           {nil, heartbeat.CauseCompleted, ""},
		"a drained learner may be resumed":          {wrap(errDrained), heartbeat.CauseDrained, ""},
		"a superseded learner is Fenced":            {wrap(errFenced), heartbeat.CauseFenced, "Superseded"},
		"an attempt that is taken is Fenced":        {wrap(store.ErrClaimed), heartbeat.CauseFenced, "Superseded"},
		"lost states are data that will not return": {wrap(weights.ErrNoUsableState), heartbeat.CauseDataRejected, "NoUsableCheckpoint"},
		"states without the optimizer are such":     {fmt.Errorf("%w: %w", weights.ErrNoUsableState, weights.ErrColdOptimizer), heartbeat.CauseDataRejected, "OptimizerNotRestored"},
		"a refused key wants a person":              {wrap(&tinker.Error{Category: tinker.CategoryUnauthorized}), heartbeat.CauseConfigRejected, "KeyRefused"},
		"refused settings want a person":            {wrap(&weights.SettingsError{Err: errors.New("x")}), heartbeat.CauseConfigRejected, "UnsupportedByEndpoint"},
		"data that are refused whole want a person": {wrap(&weights.RejectedError{Err: errors.New("x")}), heartbeat.CauseConfigRejected, "UnsupportedByEndpoint"},
		"an unknown model wants a person":           {unsupported(reasonModelUnknown, "x"), heartbeat.CauseConfigRejected, "ModelUnknown"},
		"a broken model is no end":                  {wrap(tinker.ErrModelBroken), heartbeat.CauseCrashed, ""},
		"a lost promise is no end":                  {wrap(&tinker.Error{Category: tinker.CategoryPromiseLost}), heartbeat.CauseCrashed, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdictOf(tc.err)
			if got.Cause != tc.cause || got.Reason != tc.reason {
				t.Errorf("verdict is %s (%s), want %s (%s)", got.Cause, got.Reason, tc.cause, tc.reason)
			}
			if ends := isTerminal(tc.err); ends != (tc.cause != heartbeat.CauseCrashed) {
				t.Errorf("isTerminal is %v for %s", ends, tc.cause)
			}
		})
	}
	if !isTerminal(ErrKilled) {
		t.Error("a killed learner goes on")
	}
}

func evaluating(change func(*runspec.RunFile)) runspec.RunFile {
	file := runspec.RunFile{
		Fixed: runspec.Fixed{Algorithm: &runspec.Algorithm{Steps: 10, TasksPerStep: 1, Substeps: 1}},
		Evaluation: &runspec.Evaluation{EverySteps: 4, Before: true, After: true, Environments: []runspec.Environment{
			{Name: "b", GroupSize: 2, Splits: []runspec.Split{{Name: "test", Tasks: 2}}, PassAt: []int{1, 2}},
			{Name: "a", GroupSize: 1, Splits: []runspec.Split{{Name: "x", Tasks: 1}, {Name: "y", Tasks: 1}}},
		}},
	}
	if change != nil {
		change(&file)
	}
	return file
}

func TestEvaluationIsDue(t *testing.T) {
	cases := map[string]struct {
		change func(*runspec.RunFile)
		want   []int64
	}{
		"before, every four steps and after": {nil, []int64{0, 4, 8, 10}},
		"after alone":                        {func(f *runspec.RunFile) { f.Evaluation.Before, f.Evaluation.EverySteps = false, 0 }, []int64{10}},
		"every five steps, the last among them": {func(f *runspec.RunFile) {
			f.Evaluation.Before, f.Evaluation.After, f.Evaluation.EverySteps = false, false, 5
		}, []int64{5, 10}},
		"never":                          {func(f *runspec.RunFile) { f.Evaluation = nil }, nil},
		"once, where nothing is trained": {func(f *runspec.RunFile) { f.Fixed.Algorithm = nil }, []int64{0}},
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
	version := schedule.Version{Step: 4, Lineage: rl.Genesis("x"), Sampler: "s"}
	var got []string
	for _, lease := range plan.leases(version, 7) {
		if lease.Key.Plan != plan.digest || lease.Seed != 7 || lease.Sampler != "s" || lease.Key.Kind != rl.Evaluate {
			t.Errorf("lease %+v is not of the evaluation", lease)
		}
		got = append(got, fmt.Sprintf("%d %s/%s/%d of %d", lease.Key.Slot, lease.Environment, lease.Split, lease.Task, lease.GroupSize))
	}
	want := []string{"0 b/test/0 of 2", "1 b/test/1 of 2", "2 a/x/0 of 1", "3 a/y/0 of 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
	other := planEvaluation(evaluating(func(f *runspec.RunFile) { f.Evaluation.Environments[0].Sampling.Temperature = 0.5 }))
	if other.digest == plan.digest {
		t.Error("another temperature is the same plan")
	}
	same := planEvaluation(evaluating(func(f *runspec.RunFile) { f.Evaluation.EverySteps = 7 }))
	if same.digest != plan.digest {
		t.Error("another interval is another plan")
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(0, 0)
	s := newStatus("uid", 3, func() time.Time { return now })
	s.update(func(p *heartbeat.Progress) { p.Step = 4 })
	now = now.Add(5 * time.Second)
	got := s.snapshot("sampling: 1 of 2 groups")
	want := heartbeat.HeartbeatReply{
		RunUID: "uid", Attempt: 3, Sequence: 1, SecondsSinceProgress: 5, BlockedOn: "sampling: 1 of 2 groups",
		Progress: heartbeat.Progress{Phase: heartbeat.PhaseOpening, Step: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	s.blockOnStore("disk is gone")
	if got := s.snapshot("").BlockedOn; got != "artifacts: disk is gone" {
		t.Errorf("blocked on %q, want the store", got)
	}
	s.observe(tinker.Event{Category: tinker.CategoryThrottled})
	if got := s.snapshot(""); got.Upstream != "throttled" || got.BlockedOn != "endpoint: throttled" {
		t.Errorf("blocked on %q, upstream %q, want throttled", got.BlockedOn, got.Upstream)
	}
	now = now.Add(time.Second)
	s.observe(tinker.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity})
	if got := s.snapshot("").Upstream; got != "paused_capacity" {
		t.Errorf("upstream is %q, want the newest trouble", got)
	}
	s.observe(tinker.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity, Over: true})
	if got := s.snapshot("").Upstream; got != "throttled" {
		t.Errorf("upstream is %q, want what is not over", got)
	}
	now = now.Add(2 * troubleLasts)
	if got := s.snapshot("").Upstream; got != "" {
		t.Errorf("upstream is %q long after", got)
	}
}

func TestExposition(t *testing.T) {
	got := exposition(heartbeat.HeartbeatReply{Attempt: 2, Progress: heartbeat.Progress{Step: 3, Metrics: map[string]float64{"test/pass@1": 0.5}}})
	for _, line := range []string{"tinker_learner_attempt 2\n", "tinker_learner_step 3\n", "tinker_learner_metric{name=\"test/pass@1\"} 0.5\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("exposition lacks %q:\n%s", line, got)
		}
	}
}

func TestCheck(t *testing.T) {
	train := func(change func(*runspec.Algorithm)) runspec.RunFile {
		alg := runspec.Algorithm{TasksPerStep: 1, Steps: 1, Substeps: 1, Loss: runspec.Loss{Name: "ppo"}}
		change(&alg)
		return runspec.RunFile{Fixed: runspec.Fixed{Algorithm: &alg}}
	}
	cases := map[string]struct {
		file runspec.RunFile
		want string
	}{
		"nothing to do":           {runspec.RunFile{}, "NothingToDo"},
		"no steps":                {train(func(a *runspec.Algorithm) { a.Steps = 0 }), "AlgorithmRejected"},
		"a lag that diverges":     {train(func(a *runspec.Algorithm) { a.Lag, a.Loss.Name = 1, "importance_sampling" }), "LagRejected"},
		"a lag that is clipped":   {train(func(a *runspec.Algorithm) { a.Lag = 1 }), ""},
		"an evaluation by itself": {evaluating(func(f *runspec.RunFile) { f.Fixed.Algorithm = nil }), ""},
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

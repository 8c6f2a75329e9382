// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// TestRetryOfFailedEvaluation loses the sampler weights of an evaluation, and the first try to make them again fails.
// The evaluation is done while the run trains, without another model.
func TestRetryOfFailedEvaluation(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = 6 })
	worker := w.startWorker("w0", behavior{blockEvaluation: true})
	<-w.startLearner(1, w.dieAt("claim.looked", 2)).done
	worker.kill()
	w.addFaults(fault.Rule{Op: "create_sampling_session", Name: "s000000.*a001", Do: fault.Missing, Count: -1})
	w.addFaults(fault.Rule{Op: "save_weights_for_sampler", Name: "s000000", Do: fault.Fail, Category: "server"})
	w.startWorker("w1", behavior{})
	results := func() int {
		found, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "evaluations", "*.json"))
		if err != nil {
			t.Error(err)
		}
		return len(found)
	}
	a := w.startLearner(2, w.at("covered.sent", 5, func(ctx context.Context, _ func() error, _ string, _ int64) error {
		for began := time.Now(); results() == 0 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > patience {
				t.Errorf("the failed evaluation has no result by step 5: got %v, want at most %v",
					time.Since(began), patience)
				break
			}
		}
		return nil
	}))
	w.waitFor(a, contract.CauseCompleted)
	if got := results(); got != 2 {
		t.Errorf("%d evaluations have a result, want 2", got)
	}
	// One model in each attempt, two to check the loaded optimizer, and two to make the weights again.
	if made := w.sim.Stats().Calls["create_model"]; made > 6 {
		t.Errorf("%d models were made, want 6", made)
	}
}

// TestEvaluationWithoutTraining scores a base model, a state and sampler weights, without training.
func TestEvaluationWithoutTraining(t *testing.T) {
	t.Parallel()
	source := newFixture(t, nil)
	source.startRolloutWorker("s0")
	newest := source.waitFor(source.startLearner(1, nil), contract.CauseCompleted).Progress.Checkpoints[0]
	found := map[string]float64{}
	for i, tc := range []struct{ name, path string }{
		{"the base model", ""}, {"a state", newest.State}, {"sampler weights", newest.Sampler},
	} {
		digit := string(rune('0' + i))
		t.Run(tc.name, func(t *testing.T) {
			w := *source
			w.shared, w.workers, w.t = &shared{}, nil, t
			w.artifacts = t.TempDir()
			w.file.ArtifactsDir = w.artifacts
			w.identify("e" + digit + "3a9c2b-0000-4000-8000-000000000002")
			w.file.Fixed.Algorithm, w.file.Fixed.Environments = nil, nil
			w.file.Evaluation = &contract.Evaluation{Environments: []contract.Environment{arithmetic("test", 12, 4, 8)}}
			w.file.Evaluation.Environments[0].PassAt = []int{1, 4}
			if tc.path != "" {
				w.file.Fixed.InitFrom = &contract.InitFrom{Checkpoint: tc.path}
			}
			var err error
			if w.file.SpecDigest, err = contract.SpecDigest(w.file.Fixed); err != nil {
				t.Fatal(err)
			}
			kill := w.startRolloutWorker("e0")
			<-w.startLearner(1, w.dieAt("open.loaded", -1)).done
			verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			// The verdict is lost, and another attempt finds the result of this one.
			again := w.waitFor(w.startLearner(3, nil), contract.CauseCompleted)
			kill()
			if diff := cmp.Diff(evaluationsOf(verdict), evaluationsOf(again)); diff != "" {
				t.Errorf("the next attempt reports another evaluation (-first +next):\n%s", diff)
			}
			got, ok := verdict.Progress.Metrics["test/pass@1"]
			if line := w.result(0); !ok || line != got {
				t.Errorf("evaluations.jsonl has %v, the verdict %v (%v)", line, got, ok)
			}
			found[tc.name] = got
		})
	}
	if found["the base model"] == 0 {
		t.Error("pass@1 of the base model is 0, so that a wrong figure would not show")
	}
	if found["a state"] != found["sampler weights"] {
		t.Errorf("pass@1 of a state is %v, of its own sampler weights %v", found["a state"], found["sampler weights"])
	}
}

// TestEvaluationSample runs the sample countdown-evaluate.yaml, which trains nothing. The base model solves some
// puzzles, and more of them with four samples than with one.
func TestEvaluationSample(t *testing.T) {
	t.Parallel()
	builder := registry.Builder{Data: source.New(source.Config{Dir: t.TempDir()}).Open}
	s := sample.Read(t, "countdown-evaluate.yaml")
	file := s.RunFile(t, s.Pins(t, builder))
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed, f.Evaluation, f.Concurrency, f.Steps = file.Fixed, file.Evaluation, file.Concurrency, file.Steps
	})
	w.startRolloutWorkerOf("w0", builder)
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	found := map[string]float64{}
	for _, e := range evaluationsOf(verdict)["countdown-puzzles"] {
		found[e.Name] = e.Value
	}
	if found["pass@1"] < 0.1 || found["pass@1"] > 0.4 || found["pass@4"] < found["pass@1"]+0.1 {
		t.Errorf("the evaluation found %v, want a pass@1 of 0.1 to 0.4 and a pass@4 that is higher by 0.1 at least", found)
	}
	if verdict.Progress.Usage.TrainedTokens != 0 || len(verdict.Progress.Checkpoints) != 0 {
		t.Errorf("the run trained %d tokens and saved %v, want neither", verdict.Progress.Usage.TrainedTokens,
			verdict.Progress.Checkpoints)
	}
}

// evaluationsOf returns the results of evaluations in a verdict.
func evaluationsOf(verdict contract.Verdict) map[string][]contract.Estimate {
	found := map[string][]contract.Estimate{}
	for _, e := range verdict.Progress.Environments {
		found[e.Name] = e.Evaluation
	}
	return found
}

// TestEvaluationAfterDeath kills the learner and a worker in the middle of an evaluation without training, in which an
// environment has two roles and faults. The result equals the result of an undisturbed evaluation.
func TestEvaluationAfterDeath(t *testing.T) {
	t.Parallel()
	change := func(f *contract.RunFile) {
		f.Fixed.Algorithm, f.Fixed.Environments = nil, nil
		env := arithmetic("test", 12, 4, 8)
		env.Limits, env.PassAt = playing.Limits{Turns: 3, OnLimit: playing.LimitGrade}, []int{1, 2, 4}
		f.Evaluation = &contract.Evaluation{Environments: []contract.Environment{env}}
	}
	undisturbed := newFixture(t, change)
	undisturbed.startRolloutWorkerOf("w0", rolesBuilder{})
	verdict := undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted)
	want := evaluationsOf(verdict)
	for _, name := range []string{"pass@1", "pass@2", "solved@4", "judge/reward/total", "solver/reward/total"} {
		if !slices.ContainsFunc(want["arithmetic"],
			func(e contract.Estimate) bool { return e.Name == name && e.Low != nil }) {
			t.Errorf("no interval of %s is reported: %+v", name, want)
		}
	}
	if verdict.Progress.Usage.SampledTokens == 0 || verdict.Progress.Usage.TrainedTokens != 0 {
		t.Errorf("the usage is %+v, want only the usage of sampling", verdict.Progress.Usage)
	}

	w := newFixture(t, change)
	var judges atomic.Int64
	reached := make(chan struct{})
	kill := w.startRolloutWorkerOf("w0", rolesBuilder{judging: func() {
		if judges.Add(1) == 5 {
			close(reached)
		}
	}})
	first := w.startLearner(1, nil)
	<-reached
	first.cancel()
	kill()
	<-first.done
	w.startRolloutWorkerOf("w1", rolesBuilder{})
	w.startRolloutWorkerOf("w2", rolesBuilder{})
	if diff := cmp.Diff(want, evaluationsOf(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))); diff != "" {
		t.Errorf("the evaluation differs (-undisturbed +got):\n%s", diff)
	}
}

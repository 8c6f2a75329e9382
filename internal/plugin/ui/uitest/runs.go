// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package uitest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Stuck is the run whose reward stops rising at step 30.
const Stuck = "countdown-qwen3"

// runs returns a run in each state, a sweep, and a fork.
func runs() ([]made, error) {
	var all []made
	var problems []error
	add := func(name string, steps int64, figures func(int64) map[string]float64, changes ...func(*v1alpha1.TrainingRun)) {
		run, h, err := NewRun(name, steps, figures)
		if err != nil {
			problems = append(problems, err)
			return
		}
		for _, change := range changes {
			change(run)
		}
		all = append(all, made{run, h})
	}
	add(Stuck, 48, Figures(Stuck, .055, .82, 30))
	add("countdown-qwen3-s40", 22, Figures("fork", .07, .86, 99), func(run *v1alpha1.TrainingRun) {
		run.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: Stuck, Step: new(int64(40))}}
		run.Spec.Environments[0].Sampling.MaxTokens = 2048
	})
	for i, rate := range []float64{1e-5, 4e-5, 1.6e-4} {
		for seed := range 2 {
			name := fmt.Sprintf("lr-%d-seed-%d", i, seed)
			add(name, 80, Figures(name, .02+.018*float64(i%2)+.004*float64(seed), .62+.12*float64(i%2), 99),
				over(v1alpha1.StateSucceeded), func(run *v1alpha1.TrainingRun) {
					run.Labels[observe.LabelSweep] = "lr"
					run.Spec.Algorithm.Optimizer.LearningRate, run.Spec.Algorithm.Seed = rate, int64(seed)
				})
		}
	}
	add("countdown-llama", 12, Figures("llama", .03, .6, 99), func(run *v1alpha1.TrainingRun) {
		run.Spec.Model.Name = "meta-llama/Llama-3.1-8B"
		show(&run.Status, v1alpha1.ConditionProgressing, problem.Problem{Code: problem.EndpointUnreachable,
			Evidence: "POST /api/v1/asample: dial tcp 10.0.3.7:443: connect: connection refused"})
		run.Status.State = v1alpha1.StateRecovering
	})
	add("judge-ablation", 33, Figures("judge", .04, .55, 99), func(run *v1alpha1.TrainingRun) {
		run.Spec.Suspend = new(true)
		run.Status.State = v1alpha1.StateSuspended
		run.Status.Workers, run.Status.ReadyWorkers = new(int32(0)), new(int32(0))
		set(&run.Status, status.True(v1alpha1.ConditionSuspended, v1alpha1.ReasonSuspended, "The run is suspended."))
		set(&run.Status, status.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonSuspended, "The run is suspended."))
	})
	add("too-hot", 17, Figures("hot", .01, .2, 99), over(v1alpha1.StateFailed), func(run *v1alpha1.TrainingRun) {
		found := problem.Problem{Code: problem.Diverged, Evidence: "the loss of step 18 is not a number"}
		set(&run.Status, status.Show(v1alpha1.ConditionFailed, metav1.ConditionTrue, found))
		show(&run.Status, v1alpha1.ConditionProgressing, found)
	})
	add("notes-sft", 61, supervised, over(v1alpha1.StateSucceeded), func(run *v1alpha1.TrainingRun) {
		run.Spec.Mode, run.Spec.Environments, run.Status.Environments = v1alpha1.ModeSupervise, nil, nil
	})
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return all, nil
}

// over ends a run.
func over(state string) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) {
		run.Status.State = state
		run.Status.CompletionTime = new(metav1.NewTime(Now.Add(-3 * time.Hour)))
		run.Status.Workers, run.Status.ReadyWorkers = new(int32(0)), new(int32(0))
		run.Status.Attempts[0].CompletionTime = run.Status.CompletionTime
		run.Status.Attempts[0].Cause = string(contract.CauseCompleted)
		if state == v1alpha1.StateSucceeded {
			set(&run.Status, status.True(v1alpha1.ConditionComplete, v1alpha1.ReasonFinished, "The last step is committed."))
			set(&run.Status, status.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonFinished, "The run is complete."))
			run.Status.Diagnoses = nil
		}
	}
}

func supervised(step int64) map[string]float64 {
	nll := .9 + 1.4/(1+.09*float64(step)) + .02*noise("nll", step)
	figures := map[string]float64{contract.MetricNLL: nll, contract.MetricLoss: nll * 4096,
		contract.MetricStepSeconds: 21 + noise("t", step)}
	if step%10 == 0 {
		figures[contract.MetricHeldOutNLL] = nll + .05
	}
	return figures
}

// Many returns the given number of runs, and a history of the given number of steps.
func Many(count int, steps int64) ([]*v1alpha1.TrainingRun, *history.History, error) {
	first, h, err := NewRun("run-0000", steps, func(step int64) map[string]float64 {
		return map[string]float64{contract.MetricReward: noise("many", step), contract.MetricPassAt1: .5}
	})
	if err != nil {
		return nil, nil, err
	}
	all := []*v1alpha1.TrainingRun{first}
	for i := 1; i < count; i++ {
		run := first.DeepCopy()
		run.Name = fmt.Sprintf("run-%04d", i)
		run.UID = first.UID + "-" + "x"
		all = append(all, run)
	}
	return all, h, nil
}

// environments returns the environments of the runs, and one that is not ready.
func environments() []*v1alpha1.RewardEnvironment {
	newEnvironment := func(name, spec string) *v1alpha1.RewardEnvironment {
		e := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace,
			UID: "uid-environment-" + "x", CreationTimestamp: metav1.NewTime(Now.Add(-80 * time.Hour))}}
		if err := yaml.UnmarshalStrict([]byte(spec), &e.Spec); err != nil {
			panic(err) // The specs below are part of the program.
		}
		return e
	}
	ready := newEnvironment("countdown", `
dataset:
  jsonl: {claimName: countdown}
  splits: [{name: train, source: train.jsonl}, {name: test, source: test.jsonl}]
reward: {expression: "reply.lastNumber() == double(row.target) ? 1.0 : 0.0"}
`)
	ready.Status = v1alpha1.RewardEnvironmentStatus{Tasks: new(int64(13312)), CanaryReward: new(1.0),
		Deterministic: new(true), Digest: "9f3c1c0e8d", ProbeTime: new(metav1.NewTime(Now.Add(-79 * time.Hour))),
		Splits: []v1alpha1.SplitStatus{{Name: "train", Tasks: new(int64(12800))}, {Name: "test", Tasks: new(int64(512))}}}
	c := status.True(v1alpha1.ConditionReady, "Ready", "The probe has played a task.")
	status.Set(&ready.Status.Conditions, &ready.Status.Codes, 1, Now.Add(-79*time.Hour), c)
	broken := newEnvironment("proofs", `
dataset: {jsonl: {claimName: proofs}, splits: [{name: train, source: train.jsonl}]}
reward: {expression: "reply.lastNumber() == double(row.answer) ? 1.0 : 0.0"}
`)
	found := problem.Problem{Code: problem.ClaimNotFound, Evidence: `persistentvolumeclaim "proofs" not found`,
		Field: "dataset.jsonl.claimName"}
	shown := status.Show(v1alpha1.ConditionReady, metav1.ConditionFalse, found)
	shown.Message = found.ProbeMessage()
	status.Set(&broken.Status.Conditions, &broken.Status.Codes, 1, Now.Add(-2*time.Hour), shown)
	return []*v1alpha1.RewardEnvironment{ready, broken}
}

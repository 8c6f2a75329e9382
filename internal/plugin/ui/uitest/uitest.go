// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package uitest has a cluster in memory with runs to look at, for tests of the pages. The figures of its runs come
// from a formula, but the findings of the pages do not: the rules of package diagnosis look at the same rows.
package uitest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Now is the time at which the runs are looked at.
var Now = time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)

// Namespace is the namespace of the runs.
const Namespace = "research"

// secondsOfStep is the duration of a step of a run.
const secondsOfStep = 95

// New returns a cluster with runs in each state, environments, histories and events.
func New(ctx context.Context, hooks interceptor.Funcs) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.TrainingRun{},
		&v1alpha1.RewardEnvironment{}).Build(), validating(hooks))
	all, err := runs()
	if err != nil {
		return nil, err
	}
	for _, environment := range environments() {
		if err := c.Create(ctx, environment); err != nil {
			return nil, fmt.Errorf("creating environment %s: %w", environment.Name, err)
		}
		if err := c.Status().Update(ctx, environment); err != nil {
			return nil, fmt.Errorf("writing the status of environment %s: %w", environment.Name, err)
		}
	}
	for _, made := range all {
		if err := Add(ctx, c, made.run, made.history); err != nil {
			return nil, err
		}
	}
	return c, addEvents(ctx, c)
}

// Add creates a run with its status and its history.
func Add(ctx context.Context, c client.Client, run *v1alpha1.TrainingRun, h *history.History) error {
	told := run.Status
	if err := c.Create(ctx, run); err != nil {
		return fmt.Errorf("creating run %s: %w", run.Name, err)
	}
	run.Status = told
	if err := c.Status().Update(ctx, run); err != nil {
		return fmt.Errorf("writing the status of run %s: %w", run.Name, err)
	}
	if h == nil {
		return nil
	}
	parts, err := h.Encode()
	if err != nil {
		return fmt.Errorf("encoding the history of run %s: %w", run.Name, err)
	}
	return historymap.Write(ctx, c, run, nil, nil, parts)
}

// made is a run with its history.
type made struct {
	run     *v1alpha1.TrainingRun
	history *history.History
}

// specOf is the spec of a run, as YAML; %s is the model, %d the seed and %g the learning rate.
const specOf = `
model: {name: %s, loraRank: 32}
tinker:
  apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}
environments:
- name: countdown
  splits: [{name: train, shuffle: true}]
  groupSize: 16
  sampling: {maxTokens: 512, temperature: 1.0}
algorithm:
  tasksPerStep: 32
  steps: 80
  seed: %d
  loss: {name: PPO, clipLow: 0.8, clipHigh: 1.2}
  optimizer: {learningRate: %g}
checkpoints: {everySteps: 10, bestMetric: test/pass@1}
artifacts: {claimName: runs}
budget: {usd: 60}
`

// NewRun returns a run and its history of the given number of steps. figures returns the figures of a step.
func NewRun(name string, steps int64, figures func(step int64) map[string]float64) (*v1alpha1.TrainingRun,
	*history.History, error) {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace,
		UID: types.UID("uid-" + name), Labels: map[string]string{},
		CreationTimestamp: metav1.NewTime(Now.Add(-time.Duration(steps+4) * secondsOfStep * time.Second))}}
	text := fmt.Sprintf(specOf, "Qwen/Qwen3-8B", seedOf(name)%4, 4e-5)
	if err := yaml.UnmarshalStrict([]byte(text), &run.Spec); err != nil {
		return nil, nil, fmt.Errorf("decoding the spec of run %s: %w", name, err)
	}
	h := &history.History{}
	for step := int64(1); step <= steps; step++ {
		h.Add("pod", []contract.Record{{Number: step, Step: step, Lineage: "lineage", Attempt: attemptAt(step),
			Time: Now.Add(-time.Duration(steps-step) * secondsOfStep * time.Second).Unix(), Metrics: figures(step)}})
	}
	run.Status = statusOf(run, h, steps)
	run.Status.Checkpoints = checkpointsOf(steps, figures)
	if len(run.Status.Checkpoints) > 0 {
		newest := run.Status.Checkpoints[0].Name
		run.Status.LatestCheckpoint, run.Status.BestCheckpoint = newest, newest
	}
	return run, h, nil
}

// attemptAt returns the attempt that committed a step. The second attempt begins after step 21.
func attemptAt(step int64) int32 {
	if step > 21 {
		return 2
	}
	return 1
}

// statusOf returns the status of a run in progress, with the diagnoses that its history has.
func statusOf(run *v1alpha1.TrainingRun, h *history.History, steps int64) v1alpha1.TrainingRunStatus {
	s := v1alpha1.TrainingRunStatus{State: v1alpha1.StateTraining, Step: &steps, Steps: new(int64(80)),
		Workers: new(int32(4)), ReadyWorkers: new(int32(4)), Restarts: new(int32(1)),
		StartTime: new(metav1.NewTime(run.CreationTimestamp.Add(time.Minute))),
		Usage: &v1alpha1.Usage{PromptTokens: new(steps * 61_000), SampledTokens: new(steps * 148_000),
			TrainedTokens: new(steps * 205_000), BoughtTwiceTokens: new(int64(205_000)),
			EstimatedUSD: new(0.46 * float64(steps))},
		Environments: []v1alpha1.EnvironmentStatus{{Name: "countdown", Digest: "9f3c1c0e", Tasks: new(int64(12800)),
			FaultRatio: new(0.004), Fault: "train task 4711: the reward timed out after 10s"}}}
	latest := map[string]float64{}
	for _, row := range h.Rows {
		for name, value := range row.Metrics {
			latest[name] = value
		}
	}
	for _, name := range []string{contract.MetricReward, contract.MetricPassAt1, contract.MetricNLL,
		contract.MetricHeldOutNLL, contract.MetricStepSeconds, contract.MetricSampledTokensPerSecond} {
		if v, ok := latest[name]; ok {
			s.Metrics = append(s.Metrics, v1alpha1.MetricValue{Name: name, Value: status.Round(v)})
		}
	}
	s.Environments[0].Reward, s.Environments[0].PassAt1 = s.Metric(contract.MetricReward), s.Metric(contract.MetricPassAt1)
	s.Diagnoses = status.Diagnoses(diagnosis.Of(h.Rows, diagnosis.Settings{}))
	s.Attempts = []v1alpha1.Attempt{
		{Number: 2, StartTime: new(metav1.NewTime(Now.Add(-time.Duration(steps-21) * secondsOfStep * time.Second))),
			FromStep: new(int64(20)), ToStep: &steps},
		{Number: 1, Cause: string(contract.CauseDisrupted), Message: "the node was drained", FromStep: new(int64(0)),
			ToStep: new(int64(21)), StartTime: s.StartTime,
			CompletionTime: new(metav1.NewTime(Now.Add(-time.Duration(steps-20) * secondsOfStep * time.Second)))},
	}
	set(&s, status.True(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "The spec makes a run."))
	set(&s, status.True(v1alpha1.ConditionPodsReady, v1alpha1.ReasonRunning, "The learner and 4 workers are ready."))
	set(&s, status.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonProgressing,
		fmt.Sprintf("Step %d of 80 is committed.", steps)))
	return s
}

// checkpointsOf returns a checkpoint of each tenth step, the newest first.
func checkpointsOf(steps int64, figures func(step int64) map[string]float64) (all []v1alpha1.Checkpoint) {
	for step := steps / 10 * 10; step > 0 && len(all) < 8; step -= 10 {
		name := fmt.Sprintf("s%d-lineage", step)
		all = append(all, v1alpha1.Checkpoint{Name: name, Step: step, Lineage: "1f7a9c",
			State:   "tinker://8d0f-2c41:train:0/weights/" + name,
			Sampler: "tinker://8d0f-2c41:train:0/sampler_weights/" + name, Metric: contract.MetricPassAt1,
			Value:    new(status.Round(figures(step)[contract.MetricPassAt1])),
			SaveTime: new(metav1.NewTime(Now.Add(-time.Duration(steps-step) * secondsOfStep * time.Second)))})
	}
	return all
}

func set(s *v1alpha1.TrainingRunStatus, c status.Condition) {
	status.Set(&s.Conditions, &s.Codes, 1, Now.Add(-20*time.Minute), c)
}

// show sets a condition that shows a problem.
func show(s *v1alpha1.TrainingRunStatus, kind string, found problem.Problem) {
	set(s, status.Show(kind, metav1.ConditionFalse, found))
}

// noise returns a number between -1 and 1 that a name and a step decide.
func noise(name string, step int64) float64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %d", name, step)
	return 2*float64(sum.Sum64()%10_000)/10_000 - 1
}

func seedOf(name string) int64 { return int64(len(name)) }

// Figures returns a function with the figures of each step of a run. The run learns at a speed, towards a limit,
// until the step plateau.
func Figures(name string, speed, limit float64, plateau int64) func(int64) map[string]float64 {
	return func(step int64) map[string]float64 {
		at := math.Min(float64(step), float64(plateau))
		late := 1 / (1 + math.Exp(-(float64(step)-float64(plateau))/2.5))
		reward := limit * (1 - math.Exp(-speed*at))
		figures := map[string]float64{
			contract.MetricReward: reward + .018*noise(name, step), contract.MetricLoss: -120 * noise(name+"loss", step),
			contract.MetricEntropy:       .62 - .25*reward + .02*noise(name+"e", step),
			contract.MetricKLSampleTrain: .0021 + .0006*noise(name+"k", step),
			contract.MetricStepSeconds:   secondsOfStep + 9*noise(name+"t", step), contract.MetricSampledTokensPerSecond: 1600,
			"env/all/stop/length":               .04 + .66*late*boolean(plateau < 80) + .015*noise(name+"c", step),
			"env/all/by_group/frac_mixed":       .62 - .2*late,
			"env/all/by_group/frac_all_good":    .1,
			"env/countdown/sampled_tokens":      240 + 260*late*boolean(plateau < 80),
			"env/countdown/reward/total":        reward + .018*noise(name, step),
			"env/countdown/fault_ratio":         .004,
			"batch/prompt_tokens":               61_000,
			"batch/sampled_tokens":              148_000 * (1 + late*boolean(plateau < 80)),
			"unclipped_grad_l2:mean":            .31 + .05*noise(name+"g", step),
			"env/all/turns_per_episode":         1,
			"optim/lr":                          4e-5,
			"env/all/ac_tokens_per_turn":        240 + 260*late*boolean(plateau < 80),
			"time/train_step":                   31 + 2*noise(name+"ts", step),
			"time/sampling":                     58 + 6*noise(name+"ss", step),
			"time/save_checkpoint":              3,
			"env/all/by_group/frac_all_bad":     .28 + .1*late,
			"env/countdown/correct":             reward,
			"env/countdown/truncated":           .04 + .66*late*boolean(plateau < 80),
			"env/countdown/answered":            .95 - .6*late*boolean(plateau < 80),
			"env/countdown/by_group/frac_mixed": .62 - .2*late,
		}
		if step%5 == 0 {
			figures[contract.MetricPassAt1] = reward - .03
			figures[contract.MetricPassAt1+"/ci95_low"] = reward - .075
			figures[contract.MetricPassAt1+"/ci95_high"] = reward + .015
		}
		return figures
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func addEvents(ctx context.Context, c client.Client) error {
	for i, note := range []string{"Step 40 is saved as s40-lineage.", "Attempt 1 ended: the node was drained."} {
		e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("event-%d", i), Namespace: Namespace},
			Type:   []string{corev1.EventTypeNormal, corev1.EventTypeWarning}[i],
			Reason: []string{"CheckpointSaved", "AttemptEnded"}[i], Note: note,
			EventTime: metav1.NewMicroTime(Now.Add(-time.Duration(i+1) * 12 * time.Minute)),
			Regarding: corev1.ObjectReference{Name: Stuck, UID: "uid-countdown-qwen3"}}
		if err := c.Create(ctx, e); err != nil {
			return fmt.Errorf("creating an event: %w", err)
		}
	}
	return nil
}

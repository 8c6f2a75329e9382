// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// criteriaRows are sums whose rows have criteria, which the simulator's judge applies.
type criteriaRows struct{ dataset.Dataset }

func newCriteriaRows(t testing.TB) criteriaRows {
	t.Helper()
	sums, err := dataset.NewArithmetic(99)
	if err != nil {
		t.Fatal(err)
	}
	return criteriaRows{sums}
}

func (r criteriaRows) Row(ctx context.Context, split string, index int64) (dataset.Row, error) {
	row, err := r.Dataset.Row(ctx, split, index)
	if err != nil {
		return row, err
	}
	last := row.Answer[len(row.Answer)-1:]
	row.Fields = map[string]any{rubric.FieldRubrics: []any{
		"The response contains " + row.Answer + ".", "The response contains " + strconv.Quote(last) + ".",
		"The response does not contain \"+\".",
	}}
	row.Answer = ""
	return row, nil
}

// withJudge sets a model at the simulator as the judge of a run's environments.
func withJudge(f *contract.RunFile) {
	judged := contract.Definition{
		Dataset: &contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{ConfigMapRef: &ref.ConfigMap{
			Name: "rows"}}, Splits: []settings.DataSplit{
			{Name: "train", Source: "train.jsonl"}, {Name: "test", Source: "test.jsonl"},
		}}},
		Reward: &settings.Reward{RewardRule: settings.RewardRule{Rubric: &settings.Rubric{Scoring: settings.ScorePassRate,
			MinCoverage: new(1.0),
			Judge: settings.Judge{
				Tinker: &settings.TinkerJudge{Model: tinkersim.JudgeName}, Retries: new(int32(3)),
				TimeoutSeconds: 300, Sampling: settings.JudgeSampling{Temperature: new(0.7), MaxTokens: 4096}}}}},
	}
	for i := range f.Fixed.Environments {
		f.Fixed.Environments[i].Definition = judged
	}
	for i := range f.Evaluation.Environments {
		f.Evaluation.Environments[i].Definition = judged
	}
}

// startJudgedWorker starts a real worker with judges on Tinker. wrap may change each judge.
func (w *fixture) startJudgedWorker(name string, wrap func(rubric.Judge) rubric.Judge) (kill func()) {
	w.t.Helper()
	rows := newCriteriaRows(w.t)
	builder := registry.Builder{Data: func(context.Context, contract.Dataset) (dataset.Dataset, error) {
		return rows,
			nil
	}}
	return w.startJudgedWorkerOf(name, judgedWorker{builder: builder, wrap: wrap})
}

// judgedWorker describes a worker whose environments may have judges on Tinker.
type judgedWorker struct {
	builder registry.Builder
	// wrap alters a judge; nil means that judges stay as they are.
	wrap func(rubric.Judge) rubric.Judge
	// learner wraps the learner that the worker calls; nil means no wrapper.
	learner func(rollout.Learner) rollout.Learner
}

// startJudgedWorkerOf starts the worker that a judgedWorker describes.
func (w *fixture) startJudgedWorkerOf(name string, worker judgedWorker) (kill func()) {
	w.t.Helper()
	return w.startRolloutWorkerWith(name, func(config *rollout.Config) {
		judges := &rollout.Judges{Renderer: func(_ context.Context, model, _ string) (renderer.Renderer,
			error) {
			return families.ForModel(model)
		}}
		config.Judges = judges
		builder := worker.builder
		builder.JudgeProblem = judges.Report
		builder.TinkerJudge = func(definition settings.Judge) (rubric.Judge, error) {
			made, err := judges.New(definition)
			if worker.wrap != nil && err == nil {
				made = worker.wrap(made)
			}
			return made, err
		}
		config.Environments = builder
		if worker.learner != nil {
			config.Learner = worker.learner(config.Learner)
		}
	})
}

// observed calls a function before each call of a judge.
type observed struct {
	rubric.Judge
	before func(request rubric.Request) error
}

func (o observed) Complete(ctx context.Context, request rubric.Request) (string, rubric.Usage, error) {
	if err := o.before(request); err != nil {
		return "", rubric.Usage{}, err
	}
	return o.Judge.Complete(ctx, request)
}

// TestJudgedRunSurvives kills a worker within judged groups and the learner at fault points: the weights, the metrics
// and the judge's usage equal the undisturbed run's.
func TestJudgedRunSurvives(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withJudge)
	w.startJudgedWorker("w0", nil)
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	want := w.outcome(verdict)
	// 3 steps of 4 groups of 4, and twice 6 evaluated tasks; dropped groups add to them.
	if used := verdict.Progress.Usage; used.JudgePromptTokens < 60*500 || used.JudgeSampledTokens < 60*100 {
		t.Errorf("the usage is %+v, which lacks the judge's tokens", used)
	}
	for _, point := range []string{"step.sampled", "save.answered"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withJudge)
			var calls atomic.Int64
			var kill func()
			ready, died := make(chan struct{}), make(chan struct{})
			kill = w.startJudgedWorker("w1", func(inner rubric.Judge) rubric.Judge {
				return observed{inner, func(rubric.Request) error {
					if calls.Add(1) == 3 {
						<-ready
						go func() {
							kill()
							close(died)
						}()
					}
					return nil
				}}
			})
			close(ready)
			first := w.startLearner(1, w.dieAt(point, 2))
			// The worker that dies is the only worker until then, so it holds the lease of the group.
			<-died
			w.startJudgedWorker("w0", nil)
			<-first.done
			w.startJudgedWorker("w2", nil)
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestJudgeFaultsInARun fails one judgement in ten permanently, chosen by its seed. Members are left out and counted,
// none of them is scored 0, and the run has the same weights after a learner has died.
func TestJudgeFaultsInARun(t *testing.T) {
	t.Parallel()
	spoil := func(inner rubric.Judge) rubric.Judge {
		return observed{inner, func(request rubric.Request) error {
			if request.Seed != 0 && request.Seed%10 == 0 {
				return &environment.Fault{Kind: environment.JudgeFault, Permanent: true, Err: errors.New("spoilt")}
			}
			return nil
		}}
	}
	run := func(t *testing.T, dies bool) (outcome, []float64, []float64) {
		w := newFixture(t, withJudge)
		w.startJudgedWorker("w0", spoil)
		attempt := int32(1)
		if dies {
			<-w.startLearner(1, w.dieAt("step.submitted", 2)).done
			attempt = 2
		}
		done := w.outcome(w.waitFor(w.startLearner(attempt, nil), contract.CauseCompleted))
		var faults, left []float64
		for _, line := range w.metrics() {
			if _, trained := line["progress/batch"]; trained {
				faults, left = append(faults, line["batch/judge_errors"]), append(left, line["batch/members_left_out"])
			}
		}
		return done, faults, left
	}
	want, faults, left := run(t, false)
	if fmt.Sprint(faults) != fmt.Sprint(left) || total(left) == 0 {
		t.Errorf("the judge failed %v times in steps that left out %v members", faults, left)
	}
	if got, _, _ := run(t, true); got.adapter != want.adapter {
		t.Errorf("after a death the adapter is %s, undisturbed %s", got.adapter, want.adapter)
	}
}

// TestJudgedTraining trains on judgements until the judgements of held-out tasks have clearly improved.
func TestJudgedTraining(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed.Environments = []contract.Environment{arithmetic("train", 4000, 8, 16)}
		f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 32, 16
		f.Fixed.Algorithm.Optimizer.LearningRate = 1e-3
		f.Fixed.Model.LoraRank = 8
		f.Evaluation.Environments = []contract.Environment{arithmetic("test", 200, 1, 16)}
		f.Evaluation.EverySteps = 8
		f.Concurrency = 256
		withJudge(f)
	})
	w.startJudgedWorker("w0", nil)
	w.startJudgedWorker("w1", nil)
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	rates := w.metricOfEvaluations("test/env/arithmetic/" + rubric.MetricPassRate)
	t.Logf("pass_rate on held-out tasks: %.3f", rates)
	if len(rates) < 3 || rates[len(rates)-1] < rates[0]+0.15 {
		t.Errorf("pass_rate of the evaluations is %.3f: nothing was learnt", rates)
	}
}

// metricOfEvaluations returns a metric of each evaluation, in the order of their steps.
func (w *fixture) metricOfEvaluations(name string) []float64 {
	w.t.Helper()
	var values []float64
	for _, line := range w.metrics() {
		if value, ok := line[name]; ok {
			values = append(values, value)
		}
	}
	return values
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
)

func newRun() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "sums", "labels": map[string]any{"team": "a"}},
		"spec":     map[string]any{"algorithm": map[string]any{"steps": int64(10)}},
	}}
}

func TestExpand(t *testing.T) {
	runs, err := expand(newRun(), "", []string{"spec.algorithm.steps=10, 20", "spec.algorithm.seed=1,2"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range runs {
		labels := run.GetLabels()
		values := labels["sweep.rl.tinker-operator.dev/steps"] + " " + labels["sweep.rl.tinker-operator.dev/seed"]
		if want := []string{"10 1", "10 2", "20 1", "20 2"}[len(got)]; values != want {
			t.Errorf("run %d has the labels %v, want %s", len(got)+1, labels, want)
		}
		steps, _, _ := unstructured.NestedInt64(run.Object, "spec", "algorithm", "steps")
		seed, _, _ := unstructured.NestedInt64(run.Object, "spec", "algorithm", "seed")
		got = append(got, strings.Join([]string{run.GetName(), run.GetLabels()[observe.LabelSweep], run.GetLabels()["team"]},
			" "))
		if want := []int64{10, 10, 20, 20}[len(got)-1]; steps != want || seed != int64(2-len(got)%2) {
			t.Errorf("run %d has %d steps and seed %d", len(got), steps, seed)
		}
	}
	if diff := cmp.Diff([]string{"sums-1 sums a", "sums-2 sums a", "sums-3 sums a", "sums-4 sums a"}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if alone, err := expand(newRun(), "", nil); err != nil || len(alone) != 1 || alone[0].GetName() != "sums" ||
		alone[0].GetLabels()[observe.LabelSweep] != "" {
		t.Errorf("without a grid: %v, %v", alone, err)
	}
	for grid, want := range map[string]string{
		"spec.algorithm.steps":      "write PATH=A,B,C",
		"spec.algorithm.stepps=1,2": "did you mean spec.algorithm.steps?",
		"=1,2":                      "lacks a path",
		"spec.algorithm.seed=" + strings.Repeat("1,", 64) + "1": "at most 64",
	} {
		if _, err := expand(newRun(), "", []string{grid}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", grid, err, want)
		}
	}
}

func TestAxisNames(t *testing.T) {
	for grid, want := range map[string]string{
		"spec.algorithm.seed=1 spec.model.seed=2":                                     "algorithm.seed model.seed",
		"spec.environments[sums].groupSize=4 spec.algorithm.optimizer.learningRate=1": "groupSize learningRate",
		"spec.environments[a b].groupSize=1 spec.environments[c].groupSize=1":         "",
	} {
		axes := strings.Split(grid, " spec")
		for i := range axes[1:] {
			axes[i+1] = "spec" + axes[i+1]
		}
		got, err := axisNames(axes)
		if want == "" {
			want = "a-b.groupSize c.groupSize"
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", grid, got, err, want)
		}
	}
	if _, err := axisNames([]string{"spec.a=1", "spec.a=2"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("one path twice: %v", err)
	}
	if got := labelValue("[\"MLP\", \"Attention\"]"); got != "MLP-Attention" {
		t.Errorf("a list becomes %q", got)
	}
}

// TestPlace puts objects into a namespace, and refuses objects whose namespace differs from the one on the command
// line.
func TestPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		named      string
		connection cli.Connection
		want       string
		refused    string
	}{
		"an object without a namespace":  {"", cli.Connection{Namespace: "staging"}, "staging", ""},
		"another one than the context's": {"prod", cli.Connection{Namespace: "staging"}, "prod", ""},
		"that of the command line":       {"prod", cli.Connection{Namespace: "prod", NamespaceGiven: true}, "prod", ""},
		"another than the command line's": {"prod", cli.Connection{Namespace: "staging", NamespaceGiven: true}, "prod",
			`is of namespace "prod", and --namespace is "staging"`},
		"none, where the command line has": {"", cli.Connection{Namespace: "staging", NamespaceGiven: true}, "staging", ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun()
			run.SetNamespace(tc.named)
			err := place(run, &tc.connection)
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("place = %v, want %q", err, tc.refused)
			}
			if got := run.GetNamespace(); got != tc.want {
				t.Errorf("the run is of namespace %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFork(t *testing.T) {
	run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{
		Algorithm: &algorithm.Algorithm{TasksPerStep: 4, Steps: 10}, Suspend: new(true), RetryGeneration: new(int32(2)),
		ResumeFrom: &v1alpha1.ResumeFrom{UID: "u"},
	}}
	run.Name = "sums"
	forked, err := forkFlags{optimizer: "Reset", set: []string{"spec.algorithm.steps=5"}}.fork(run,
		v1alpha1.Checkpoint{Step: 40, State: "tinker://m/weights/s"})
	if err != nil {
		t.Fatal(err)
	}
	spec := forked.Object["spec"].(map[string]any)
	want := map[string]any{"checkpoint": "tinker://m/weights/s", "optimizer": "Reset"}
	if diff := cmp.Diff(want, spec["initFrom"]); diff != "" || forked.GetName() != "sums-s40" || spec["suspend"] != nil ||
		spec["retryGeneration"] != nil || spec["resumeFrom"] != nil {
		t.Errorf("run %s with spec %v begins with (-want +got):\n%s", forked.GetName(), spec, diff)
	}
	if steps, _, _ := unstructured.NestedInt64(forked.Object, "spec", "algorithm", "steps"); steps != 5 {
		t.Errorf("it has %d steps", steps)
	}
}

// TestForkSelectsData checks that a fork has other tasks than its parent had before the fork: another order, or the
// next tasks.
func TestForkSelectsData(t *testing.T) {
	for name, tc := range map[string]struct {
		flags   forkFlags
		seed    int64
		data    any
		refused string
	}{
		"plain":              {forkFlags{}, 8, nil, ""},
		"with a seed":        {forkFlags{set: []string{"spec.algorithm.seed=7"}}, 7, nil, ""},
		"with the next data": {forkFlags{continueData: true}, 7, "Continue", ""},
		"with the next data of a seed": {forkFlags{continueData: true, set: []string{"spec.algorithm.seed=9"}}, 0, nil,
			"remove"},
	} {
		run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Algorithm: &algorithm.Algorithm{Seed: 7, Steps: 10}}}
		run.Name = "sums"
		forked, err := tc.flags.fork(run, v1alpha1.Checkpoint{Step: 40, State: "tinker://m/weights/s"})
		if tc.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: the error is %v, want %q", name, err, tc.refused)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		seed, _, _ := unstructured.NestedInt64(forked.Object, "spec", "algorithm", "seed")
		data, _, _ := unstructured.NestedFieldNoCopy(forked.Object, "spec", "initFrom", "data")
		if seed != tc.seed || data != tc.data {
			t.Errorf("%s: seed %d and data %v, want %d and %v", name, seed, data, tc.seed, tc.data)
		}
	}
}

func TestEstimate(t *testing.T) {
	sums := contract.Environment{
		Splits: []contract.Split{{Tasks: 900}}, GroupSize: 8, Sampling: playing.Sampling{MaxTokens: 16},
		Limits: playing.Limits{Turns: 3, TrajectoryTokens: 40},
	}
	test := contract.Environment{Splits: []contract.Split{{Tasks: 100}}, GroupSize: 2,
		Sampling: playing.Sampling{MaxTokens: 16}}
	file := contract.RunFile{
		Fixed: contract.Fixed{Environments: []contract.Environment{sums}, Algorithm: &algorithm.Algorithm{Steps: 50,
			TasksPerStep: 32}},
		Evaluation: &contract.Evaluation{EverySteps: 20, Before: true, After: true,
			Environments: []contract.Environment{test}},
	}
	want := estimate{
		Tasks: 900, Steps: 50, GroupsPerStep: 32, Groups: 1600, Episodes: 12800, SampledTokens: 512000,
		Evaluations: 4, EvaluationEpisodes: 800, EvaluationTokens: 12800,
	}
	if diff := cmp.Diff(want, estimateOf(file, nil, nil)); diff != "" {
		t.Errorf("estimate (-want +got):\n%s", diff)
	}
	file.Fixed.Algorithm = nil
	if got := estimateOf(file, nil, nil); got.Evaluations != 1 || got.EvaluationEpisodes != 200 {
		t.Errorf("a run that evaluates only: %+v", got)
	}
}

// TestEstimateHasTheRateOfTheCookbook checks that the estimate has tinker-cookbook's learning rate for models for which
// it is known.
func TestEstimateHasTheRateOfTheCookbook(t *testing.T) {
	for model, want := range map[string]string{"Qwen/Qwen3-8B": "2e-05; tinker-cookbook's rule for supervised training " +
		"of this model gives 0.000473, and its recipes of reinforcement learning have 1e-05 to 1e-04", "other": ""} {
		file := contract.RunFile{Fixed: contract.Fixed{Algorithm: &algorithm.Algorithm{}}}
		file.Fixed.Model.Name, file.Fixed.Algorithm.Optimizer.LearningRate = model, 2e-5
		got := ""
		for _, row := range estimateOf(file, nil, nil).result().Rows {
			if row[0] == "learning rate" {
				got = row[1]
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}

// TestEstimateOfPrompts counts prompts by their mean, as prompts and among the trained tokens.
func TestEstimateOfPrompts(t *testing.T) {
	environment := func(name string, group int) contract.Environment {
		return contract.Environment{Name: name, Splits: []contract.Split{{Tasks: 10}}, GroupSize: group,
			Sampling: playing.Sampling{MaxTokens: 10}, Limits: playing.Limits{PromptTokens: 100}}
	}
	file := contract.RunFile{
		Fixed: contract.Fixed{Environments: []contract.Environment{environment("sums", 4)},
			Algorithm: &algorithm.Algorithm{Steps: 5, TasksPerStep: 2}},
		Evaluation: &contract.Evaluation{After: true, Environments: []contract.Environment{environment("test", 1)}},
		Prices:     &spending.Prices{Policy: spending.Price{Prompt: 1e6, Sampled: 1e6, Trained: 1e6}},
	}
	got := estimateOf(file, map[string]try.Prompts{"sums": {Tasks: 8, Mean: 50.5, Longest: 120, TooLong: 1}},
		map[string]try.Prompts{"test": {Tasks: 8, Mean: 20, Longest: 20}})
	// 40 episodes with 50.5 tokens, which are also trained on, and 10 of the evaluation with 20.
	if got.PromptTokens != 2020+200 || *got.USD != 2220+2020+400+100+400 {
		t.Errorf("%d tokens of prompts, and %v dollars", got.PromptTokens, *got.USD)
	}
	var shown []string
	for _, row := range got.result().Rows {
		if strings.Contains(row[0], "prompt") || strings.Contains(row[0], "dollars") {
			shown = append(shown, strings.Join(row, ": "))
		}
	}
	want := []string{
		"prompt tokens of sums: 50 on average over 8 tasks, 120 at most; 1 of the tasks have more than " +
			"limits.promptTokens and are left out: raise it, or shorten their prompts",
		"prompt tokens, about: 2.22k", "dollars, with the first prompts of episodes, at most: 5140.00",
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
}

// TestEstimateOfTeachers counts the tokens that teachers read, and says where prompts are missing.
func TestEstimateOfTeachers(t *testing.T) {
	teacher := &algorithm.Teacher{Model: "t", Coefficient: 1}
	for name, tc := range map[string]struct {
		environment contract.Environment
		tokens      int64
		unbounded   bool
		row         string
	}{
		"a trajectory that is bounded": {contract.Environment{GroupSize: 2, Teacher: teacher,
			Sampling: playing.Sampling{MaxTokens: 16}, Limits: playing.Limits{Turns: 3, TrajectoryTokens: 40}}, 10 * 2 * 41,
			false, "tokens that teachers read, at most: 820"},
		"one prompt that is bounded": {contract.Environment{GroupSize: 1, Teacher: teacher,
			Sampling: playing.Sampling{MaxTokens: 16}, Limits: playing.Limits{PromptTokens: 100}}, 10 * 117, false,
			"tokens that teachers read, at most: 1.17k"},
		"prompts of several turns": {contract.Environment{GroupSize: 1, Teacher: teacher,
			Sampling: playing.Sampling{MaxTokens: 16}, Limits: playing.Limits{Turns: 2, PromptTokens: 100}}, 10 * 33, true,
			"tokens that teachers read, at most, besides prompts: 330"},
		"a system prompt": {contract.Environment{GroupSize: 1, Sampling: playing.Sampling{MaxTokens: 16},
			Limits:  playing.Limits{TrajectoryTokens: 40},
			Teacher: &algorithm.Teacher{Model: "t", SystemPrompt: "Be brief."}}, 10 * 17, true,
			"tokens that teachers read, at most, besides prompts: 170"},
		"no teacher": {contract.Environment{GroupSize: 1, Sampling: playing.Sampling{MaxTokens: 16}}, 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := estimateOf(contract.RunFile{Fixed: contract.Fixed{Environments: []contract.Environment{tc.environment},
				Algorithm: &algorithm.Algorithm{Steps: 5, TasksPerStep: 2}},
				Prices: &spending.Prices{Teacher: spending.Price{Prompt: 1e6}}}, nil, nil)
			if got.TeacherTokens != tc.tokens || got.Unbounded != tc.unbounded || *got.USD != float64(tc.tokens) {
				t.Errorf("%d tokens, unbounded: %t, for %v dollars; want %d tokens at a dollar each, unbounded: %t",
					got.TeacherTokens, got.Unbounded, *got.USD, tc.tokens, tc.unbounded)
			}
			shown := ""
			for _, row := range got.result().Rows {
				if strings.Contains(row[0], "teachers") {
					shown = strings.Join(row, ": ")
				}
			}
			if shown != tc.row {
				t.Errorf("the plan shows %q, want %q", shown, tc.row)
			}
		})
	}
}

// TestEstimateOfRows estimates a supervised run: its trained tokens are known if it has steps and rows are cut.
func TestEstimateOfRows(t *testing.T) {
	file := contract.RunFile{
		Fixed: contract.Fixed{
			Algorithm:  &algorithm.Algorithm{Steps: 50},
			Supervised: &contract.Supervised{BatchSize: 8, MaxTokens: 100},
		},
		Evaluation: &contract.Evaluation{EverySteps: 20, Before: true, After: true,
			HeldOut: []contract.HeldOut{{Name: "test", Take: 10}, {Name: "hard", Take: 15}}},
		Prices: &spending.Prices{Policy: spending.Price{Trained: 2}},
	}
	usd := 0.1
	want := estimate{Steps: 50, RowsPerStep: 8, TrainedTokens: 40_000, Evaluations: 4, HeldOutTokens: 10_000, USD: &usd}
	if diff := cmp.Diff(want, estimateOf(file, nil, nil)); diff != "" {
		t.Errorf("estimate (-want +got):\n%s", diff)
	}
	file.Fixed.Algorithm = &algorithm.Algorithm{Epochs: 2}
	epochs := estimateOf(file, nil, nil)
	if diff := cmp.Diff(estimate{Epochs: 2, RowsPerStep: 8}, epochs); diff != "" {
		t.Errorf("estimate of epochs (-want +got):\n%s", diff)
	}
	var shown []string
	for _, row := range epochs.result().Rows {
		shown = append(shown, strings.Join(row, ": "))
	}
	if text := strings.Join(shown, "\n"); !strings.Contains(text, "epochs: 2, whose steps the learner counts") ||
		!strings.Contains(text, "dollars: unknown: they depend on the rows") ||
		!strings.Contains(text, "evaluations: unknown: they follow from the steps") {
		t.Errorf("the plan shows\n%s", text)
	}
}

func TestPlanLocally(t *testing.T) {
	for name, tc := range map[string]struct {
		flags planFlags
		want  string
		err   string
	}{
		"a sample": {planFlags{file: file{path: "arithmetic.yaml"}}, "groups 1920", ""},
		"with another number of steps": {planFlags{file: file{path: "arithmetic.yaml",
			set: []string{"spec.algorithm.steps=3"}}}, "groups 96", ""},
		"a run that evaluates": {planFlags{file: file{path: "countdown-evaluate.yaml"}}, "episodes of evaluations 1024", ""},
		"with a ConfigMap":     {planFlags{file: file{path: "own-data.yaml"}}, "tasks to train on 480", ""},
		"a field that is not known": {planFlags{file: file{path: "arithmetic.yaml",
			set: []string{"spec.algorithm.stepz=3"}}}, "", `did you mean spec.algorithm.steps?`},
		"a value that a rule refuses": {planFlags{file: file{path: "arithmetic.yaml",
			set: []string{"spec.algorithm.steps=0"}}}, "", "spec.algorithm.steps"},
		"an environment that is not there": {planFlags{file: file{path: "arithmetic.yaml",
			set: []string{"spec.environments[arithmetic].environmentRef.name=sums"}}}, "", `names RewardEnvironment "sums"`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.flags.path, tc.flags.local = filepath.Join("../../../config/samples", tc.flags.path), true
			var out bytes.Buffer
			env := cli.IO{Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }}
			err := tc.flags.plan(t.Context(), env, nil, output.Plain)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("err = %v, want %q", err, tc.err)
				}
				return
			}
			if got := strings.Join(strings.Fields(out.String()), " "); err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("the plan is %q (%v), want %q in it", got, err, tc.want)
			}
		})
	}
}

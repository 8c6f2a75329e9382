// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
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
		"spec.algorithm.steps":                                  "write PATH=A,B,C",
		"spec.algorithm.stepps=1,2":                             "did you mean spec.algorithm.steps?",
		"spec.algorithm.seed=" + strings.Repeat("1,", 64) + "1": "at most 64",
	} {
		if _, err := expand(newRun(), "", []string{grid}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", grid, err, want)
		}
	}
}

// TestPlace puts objects into a namespace, and refuses those of another one than the command line names.
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
	if diff := cmp.Diff(want, estimateOf(file)); diff != "" {
		t.Errorf("estimate (-want +got):\n%s", diff)
	}
	file.Fixed.Algorithm = nil
	if got := estimateOf(file); got.Evaluations != 1 || got.EvaluationEpisodes != 200 {
		t.Errorf("a run that evaluates only: %+v", got)
	}
}

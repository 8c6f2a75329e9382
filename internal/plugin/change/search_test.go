// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
)

func TestDistributions(t *testing.T) {
	for axis, want := range map[string]string{
		"spec.algorithm.optimizer.learningRate=loguniform(1e-6,1e-4)":      "1e-06 1e-05 9.995e-05",
		"spec.algorithm.optimizer.learningRate = uniform(0, 1)":            "0 0.5 0.9999",
		"spec.environments[arithmetic].sampling.temperature=uniform(0,.5)": "0 0.25 0.5",
		"spec.algorithm.seed=uniform(1,4)":                                 "1 3 4",
		"spec.model.loraRank=loguniform(8,128)":                            "8 32 128",
		"spec.model.loraRank=8, 16,32":                                     "8 16 32",
	} {
		axis = strings.Replace(axis, " = ", "=", 1)
		d, err := distributionOf(axis)
		if err != nil {
			t.Errorf("%s: %v", axis, err)
			continue
		}
		got := strings.Join([]string{d.at(0), d.at(0.5), d.at(0.9999)}, " ")
		if got != want {
			t.Errorf("%s: %s, want %s", axis, got, want)
		}
	}
	for axis, want := range map[string]string{
		"spec.algorithm.seed=uniform(4,1)":                      "begins above its end",
		"spec.algorithm.seed=uniform(1,2.5)":                    "no whole number",
		"spec.algorithm.optimizer.learningRate=uniform(a,1)":    "bound that is not a number",
		"spec.algorithm.optimizer.learningRate=uniform(1,Inf)":  "bound that is not a number",
		"spec.algorithm.optimizer.learningRate=loguniform(0,1)": "begin above 0",
		"spec.model.name=uniform(0,1)":                          "of type string: write PATH=A,B,C",
	} {
		if _, err := distributionOf(axis); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", axis, err, want)
		}
	}
}

// TestDrawIsUniform counts draws from a logarithmic range by decade, and from a list by value: each has about a third.
func TestDrawIsUniform(t *testing.T) {
	rate, err := distributionOf("spec.algorithm.optimizer.learningRate=loguniform(1e-6,1e-3)")
	if err != nil {
		t.Fatal(err)
	}
	list, err := distributionOf("spec.model.loraRank=8,16,32")
	if err != nil {
		t.Fatal(err)
	}
	const trials = 1500
	drawn, err := draw([]distribution{rate, list}, trials, 7)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, values := range drawn {
		value, err := strconv.ParseFloat(values[0], 64)
		if err != nil || value < 1e-6 || value > 1e-3 {
			t.Fatalf("%q was drawn", values[0])
		}
		count[strconv.Itoa(int(math.Floor(math.Log10(value))))]++
		count[values[1]]++
	}
	for name, n := range count {
		if n < trials/3-80 || n > trials/3+80 {
			t.Errorf("%s was drawn %d times of %d", name, n, trials)
		}
	}
	if len(count) != 6 {
		t.Errorf("draws are of %v", count)
	}
	fewer, err := draw([]distribution{rate, list}, 5, 7)
	if err != nil || !cmp.Equal(fewer, drawn[:5]) {
		t.Errorf("five draws are %v, %v", fewer, err)
	}
	if other, _ := draw([]distribution{rate, list}, 5, 8); cmp.Equal(other, fewer) {
		t.Errorf("another seed draws the same")
	}
	all, err := draw([]distribution{list}, 3, 1)
	if err != nil || len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(all...))))) != 3 {
		t.Errorf("three values in three draws: %v, %v", all, err)
	}
	if _, err := draw([]distribution{list}, 4, 1); err == nil || !strings.Contains(err.Error(), "3 were found") {
		t.Errorf("four of three values: %v", err)
	}
}

// searched returns a run that a search may vary.
func searched() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rl.tinker-operator.dev/v1alpha1", "kind": "TrainingRun",
		"metadata": map[string]any{"name": "sums"},
		"spec": map[string]any{
			"algorithm":  map[string]any{"steps": int64(90)},
			"evaluation": map[string]any{"everySteps": int64(5)},
		},
	}}
}

const rates = "spec.algorithm.optimizer.learningRate=loguniform(1e-6,1e-3)"

func TestPrepareSearch(t *testing.T) {
	s := search{Kind: "halving", Samples: 9, Reduction: 3}
	if err := s.prepare(searched(), []string{rates}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Rungs, []int64{10, 30}) || s.Metric != "test/pass@1" {
		t.Errorf("the rungs are %v, and the metric %s", s.Rungs, s.Metric)
	}
	s = search{Kind: "halving", Samples: 9, Reduction: 3, Metric: "reward"}
	run := searched()
	unstructured.RemoveNestedField(run.Object, "spec", "evaluation")
	if err := s.prepare(run, []string{rates}); err != nil || s.Metric != "env/all/reward/total" {
		t.Errorf("without evaluations: %v, %s", err, s.Metric)
	}
	for name, tc := range map[string]struct {
		change func(s *search, spec map[string]any)
		want   string
	}{
		"kind":       {func(s *search, _ map[string]any) { s.Kind = "grid" }, "give random or halving"},
		"no samples": {func(s *search, _ map[string]any) { s.Samples = 0 }, "--samples"},
		"rungs of a random search": {func(s *search, _ map[string]any) { s.Kind, s.Rungs = "random", []int64{1} },
			"--rungs is for --search halving"},
		"reduction":    {func(s *search, _ map[string]any) { s.Reduction = 1 }, "give 2 or more"},
		"order":        {func(s *search, _ map[string]any) { s.Rungs = []int64{30, 10} }, "in their order"},
		"last step":    {func(s *search, _ map[string]any) { s.Rungs = []int64{90} }, "ends at the rung 90"},
		"not measured": {func(s *search, _ map[string]any) { s.Rungs = []int64{12} }, "give multiples"},
		"no rungs":     {func(s *search, _ map[string]any) { s.Samples = 2 }, "give --rungs"},
		"ttl": {func(_ *search, spec map[string]any) { spec["ttlSecondsAfterFinished"] = int64(1) },
			"remove the field"},
		"no evaluation": {func(_ *search, spec map[string]any) { delete(spec, "evaluation") }, "give spec.evaluation"},
		"evaluations at the end": {func(_ *search, spec map[string]any) {
			spec["evaluation"] = map[string]any{"everySteps": int64(0)}
		}, "set spec.evaluation.everySteps"},
	} {
		s, run := search{Kind: "halving", Samples: 9, Reduction: 3}, searched()
		tc.change(&s, run.Object["spec"].(map[string]any))
		if err := s.prepare(run, []string{rates}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	s = search{Kind: "random", Samples: 3, Reduction: 3}
	if err := s.prepare(searched(), nil); err == nil || !strings.Contains(err.Error(), "give --grid") {
		t.Errorf("without values: %v", err)
	}
	if _, err := expand(searched(), "", []string{rates}); err == nil ||
		!strings.Contains(err.Error(), "add --search random") {
		t.Errorf("a grid of a range: %v", err)
	}
}

func TestTrialsOfASearch(t *testing.T) {
	s := search{Kind: "random", Samples: 3, Reduction: 3}
	if err := s.prepare(searched(), []string{rates, "spec.model.loraRank=8,16,32"}); err != nil {
		t.Fatal(err)
	}
	trials, err := s.trials(searched(), "lr")
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range trials {
		rate, _, _ := unstructured.NestedFloat64(trial.Object, "spec", "algorithm", "optimizer", "learningRate")
		labels := trial.GetLabels()
		if trial.GetName() != "sums-"+strconv.Itoa(i+1) || labels[observe.LabelSweep] != "lr" ||
			labels[observe.LabelSweepValue+"learningRate"] != strconv.FormatFloat(rate, 'g', -1, 64) ||
			labels[observe.LabelSweepValue+"loraRank"] == "" || trial.GetAnnotations()[annotationHeld] != "true" {
			t.Errorf("trial %d is %v", i, trial.Object)
		}
	}
	more := s
	more.Samples = 5
	longer, err := more.trials(searched(), "lr")
	if err != nil || !cmp.Equal(longer[:3], trials) {
		t.Errorf("more samples change the first: %v", err)
	}
	s.Grid = []string{"spec.algorithm.optimizer.lerningRate=loguniform(1e-6,1e-3)"}
	if _, err := s.trials(searched(), ""); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("an unknown field: %v", err)
	}
}

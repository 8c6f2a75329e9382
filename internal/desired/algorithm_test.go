// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

func TestRolesInheritFromTheAlgorithm(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		a := run.Spec.Algorithm
		a.Grouping = algorithm.GroupingStep
		a.Advantage = algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, DDoF: 1}
		a.Roles = []algorithm.Role{
			{Name: "solver", Advantage: &algorithm.RoleAdvantage{Scale: algorithm.ScaleGroupStd, DDoF: new(int32(0))}},
			{Name: "judge", Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineNone},
				Loss: &algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.9)}},
		}
	})
	got := algorithmOf(run.Spec.Algorithm, "m", nil)
	want := []algorithm.Role{
		{Name: "judge", Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineNone, Scale: algorithm.ScaleNone,
			DDoF: new(int32(1))}, Loss: &algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.9), ClipHigh: new(1.2)}},
		{Name: "solver", Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineBatchMean,
			Scale: algorithm.ScaleGroupStd, DDoF: new(int32(0))}, Loss: &algorithm.Loss{Name: algorithm.LossImportanceSampling}},
	}
	if diff := cmp.Diff(want, got.Roles); diff != "" || got.Grouping != algorithm.GroupingStep {
		t.Errorf("grouping %q, roles (-want +got):\n%s", got.Grouping, diff)
	}
}

// TestFileAcceptsTheRolesOfAnEnvironment checks that an algorithm may name the roles of an environment with a
// workflow, whose episodes have several trajectories.
func TestFileAcceptsTheRolesOfAnEnvironment(t *testing.T) {
	pins := testPins()
	pin := pins["arithmetic"]
	pin.Definition.Interaction = &environment.Interaction{SolverJudge: &environment.SolverJudge{Solvers: 2}}
	pins["arithmetic"] = pin
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Algorithm.Grouping = algorithm.GroupingEpisode
		run.Spec.Algorithm.Roles = []algorithm.Role{{Name: "judge",
			Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineNone}}}
	})
	made, err := File(FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"})
	if err != nil || len(made.Fixed.Algorithm.Roles) != 1 {
		t.Fatalf("File: %v", err)
	}
	run.Spec.Algorithm.Roles[0].Name = "critic"
	_, err = File(FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"})
	if err == nil || !strings.Contains(err.Error(), "have the roles judge, solver") {
		t.Errorf("File of an unknown role: %v", err)
	}
}

func TestFileRefusesRolesThatNoEnvironmentHas(t *testing.T) {
	cases := map[string]struct {
		change func(*algorithm.Algorithm)
		says   []string
	}{
		"a role": {func(a *algorithm.Algorithm) {
			a.Roles = []algorithm.Role{{Name: "judge",
				Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineNone}}}
		}, []string{`algorithm.roles names "judge"`, "remove the entry"}},
		"episodes of one trajectory": {func(a *algorithm.Algorithm) { a.Grouping = algorithm.GroupingEpisode },
			[]string{"algorithm.grouping Episode", `"arithmetic"`, "Set algorithm.grouping to Trajectory or Step"}},
	}
	for name, tc := range cases {
		run := testRun(func(run *v1alpha1.TrainingRun) { tc.change(run.Spec.Algorithm) })
		_, err := File(FileInput{Run: run, Attempt: 1, Pins: testPins(), DefaultBaseURL: "https://hosted"})
		if role, ok := errors.AsType[*SpecError](err); !ok || role.Reason() != "SpecInvalid" {
			t.Errorf("%s: File = %v, want a SpecError about roles", name, err)
			continue
		}
		for _, words := range tc.says {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q does not say %q", name, err, words)
			}
		}
	}
}

func TestReferenceOfAKLPenalty(t *testing.T) {
	const checkpoint = "tinker://r:train:0/sampler_weights/s"
	cases := map[string]struct {
		kl   *algorithm.KL
		want *algorithm.KL
	}{
		"none": {nil, nil},
		"the base model": {&algorithm.KL{Coefficient: 0.1},
			&algorithm.KL{Coefficient: 0.1, Reference: &algorithm.Reference{Model: "m"}}},
		"another one": {&algorithm.KL{Coefficient: 0.1, Discount: 0.5, Reference: &algorithm.Reference{Model: "n"}},
			&algorithm.KL{Coefficient: 0.1, Discount: 0.5, Reference: &algorithm.Reference{Model: "n"}}},
		"sampler weights": {&algorithm.KL{Coefficient: 0.1, Reference: &algorithm.Reference{Checkpoint: checkpoint}},
			&algorithm.KL{Coefficient: 0.1, Reference: &algorithm.Reference{Checkpoint: checkpoint}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, algorithmOf(&algorithm.Algorithm{KL: tc.kl}, "m", nil).KL); diff != "" {
				t.Errorf("kl (-want +got):\n%s", diff)
			}
		})
	}
}

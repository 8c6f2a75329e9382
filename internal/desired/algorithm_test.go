// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestRolesInheritFromTheAlgorithm(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		a := run.Spec.Algorithm
		a.Grouping = v1alpha1.GroupingStep
		a.Advantage = v1alpha1.Advantage{Baseline: v1alpha1.BaselineBatchMean, DDoF: new(int32(1))}
		a.Roles = []v1alpha1.AlgorithmRole{
			{Name: "solver", Advantage: &v1alpha1.RoleAdvantage{Scale: v1alpha1.ScaleGroupStd, DDoF: new(int32(0))}},
			{Name: "judge", Advantage: &v1alpha1.RoleAdvantage{Baseline: v1alpha1.BaselineNone},
				Loss: &v1alpha1.Loss{Name: v1alpha1.LossPPO, ClipLow: new(0.9)}},
		}
	})
	got := algorithmOf(run.Spec.Algorithm, "m", nil)
	ppo := contract.Loss{Name: contract.LossPPO, Config: map[string]float64{contract.SettingClipLow: 0.9,
		contract.SettingClipHigh: 1.2}}
	want := []contract.Role{
		{Name: "judge", Advantage: contract.Advantage{Baseline: contract.BaselineNone, Scale: contract.ScaleNone, DDoF: 1},
			Loss: ppo},
		{Name: "solver", Advantage: contract.Advantage{Baseline: contract.BaselineBatchMean, Scale: contract.ScaleGroupStd},
			Loss: contract.Loss{Name: contract.LossImportanceSampling}},
	}
	if diff := cmp.Diff(want, got.Roles); diff != "" || got.Grouping != contract.GroupingStep {
		t.Errorf("grouping %q, roles (-want +got):\n%s", got.Grouping, diff)
	}
}

// TestGroupingByTrajectoryIsNotDigested checks that the default has no place in the run file.
func TestGroupingByTrajectoryIsNotDigested(t *testing.T) {
	run := testRun()
	if run.Spec.Algorithm.Grouping != v1alpha1.GroupingTrajectory {
		t.Errorf("grouping is %q by default", run.Spec.Algorithm.Grouping)
	}
	if got := algorithmOf(run.Spec.Algorithm, "m", nil); got.Grouping != "" || got.Roles != nil {
		t.Errorf("grouping %q and roles %v stand in the run file", got.Grouping, got.Roles)
	}
}

// A workflow's environment has roles, and several trajectories an episode.
func TestFileAcceptsTheRolesOfAnEnvironment(t *testing.T) {
	pins := testPins()
	pin := pins["arithmetic"]
	pin.Definition.Interaction = &contract.Interaction{SolverJudge: &contract.SolverJudge{Solvers: 2}}
	pins["arithmetic"] = pin
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Algorithm.Grouping = v1alpha1.GroupingEpisode
		run.Spec.Algorithm.Roles = []v1alpha1.AlgorithmRole{{Name: "judge",
			Advantage: &v1alpha1.RoleAdvantage{Baseline: v1alpha1.BaselineNone}}}
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
		change func(*v1alpha1.Algorithm)
		says   []string
	}{
		"a role": {func(a *v1alpha1.Algorithm) {
			a.Roles = []v1alpha1.AlgorithmRole{{Name: "judge",
				Advantage: &v1alpha1.RoleAdvantage{Baseline: v1alpha1.BaselineNone}}}
		}, []string{`algorithm.roles names "judge"`, "remove the entry"}},
		"episodes of one trajectory": {func(a *v1alpha1.Algorithm) { a.Grouping = v1alpha1.GroupingEpisode },
			[]string{"algorithm.grouping Episode", `"arithmetic"`, "set it to Trajectory or Step"}},
	}
	for name, tc := range cases {
		run := testRun(func(run *v1alpha1.TrainingRun) { tc.change(run.Spec.Algorithm) })
		_, err := File(FileInput{Run: run, Attempt: 1, Pins: testPins(), DefaultBaseURL: "https://hosted"})
		if role, ok := errors.AsType[*SpecError](err); !ok || role.Condition != "Accepted" || role.Reason != "RoleNotFound" {
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
		kl   *v1alpha1.KL
		want *contract.KL
	}{
		"none": {nil, nil},
		"the base model": {&v1alpha1.KL{Coefficient: 0.1},
			&contract.KL{Coefficient: 0.1, Reference: contract.Reference{Model: "m"}}},
		"another one": {&v1alpha1.KL{Coefficient: 0.1, Discount: new(0.5), Reference: &v1alpha1.KLReference{Model: "n"}},
			&contract.KL{Coefficient: 0.1, Discount: 0.5, Reference: contract.Reference{Model: "n"}}},
		"sampler weights": {&v1alpha1.KL{Coefficient: 0.1, Reference: &v1alpha1.KLReference{Checkpoint: checkpoint}},
			&contract.KL{Coefficient: 0.1, Reference: contract.Reference{Checkpoint: checkpoint}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Algorithm: &v1alpha1.Algorithm{KL: tc.kl}}}
			run.Default()
			if diff := cmp.Diff(tc.want, algorithmOf(run.Spec.Algorithm, "m", nil).KL); diff != "" {
				t.Errorf("kl (-want +got):\n%s", diff)
			}
		})
	}
}

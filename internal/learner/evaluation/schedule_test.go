// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func evaluating(change func(*contract.RunFile)) contract.RunFile {
	file := contract.RunFile{
		Fixed: contract.Fixed{Algorithm: &algorithm.Algorithm{Steps: 10, Seed: 7, TasksPerStep: 1, Substeps: 1}},
		Evaluation: &contract.Evaluation{EverySteps: 4, Before: true, After: true, Environments: []contract.Environment{
			{Name: "b", GroupSize: 2, Splits: []contract.Split{{Name: "test", Tasks: 2}}, PassAt: []int{1, 2}},
			{Name: "a", GroupSize: 1, Splits: []contract.Split{{Name: "x", Tasks: 1}, {Name: "y", Tasks: 1}}},
		}},
	}
	if change != nil {
		change(&file)
	}
	return file
}

func TestIsDue(t *testing.T) {
	cases := map[string]struct {
		change func(*contract.RunFile)
		want   []int64
	}{
		"before, every four steps and after": {nil, []int64{0, 4, 8, 10}},
		"after alone": {func(f *contract.RunFile) {
			f.Evaluation.Before,
				f.Evaluation.EverySteps = false, 0
		}, []int64{10}},
		"every five steps, the last among them": {func(f *contract.RunFile) {
			f.Evaluation.Before, f.Evaluation.After, f.Evaluation.EverySteps = false, false, 5
		}, []int64{5, 10}},
		"never":                          {func(f *contract.RunFile) { f.Evaluation = nil }, nil},
		"once, where nothing is trained": {func(f *contract.RunFile) { f.Fixed.Algorithm = nil }, []int64{0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := evaluating(tc.change)
			schedule := NewSchedule(file)
			var got []int64
			for step := range int64(11) {
				if schedule.IsDue(step) {
					got = append(got, step)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeases(t *testing.T) {
	schedule := NewSchedule(evaluating(nil))
	version := leases.Version{Step: 4, Lineage: rl.Genesis("x"), Sampler: "s"}
	var got []string
	for _, lease := range schedule.Leases(version) {
		if lease.Key.Evaluation != schedule.Digest || lease.Seed != 7 || lease.Sampler != "s" ||
			lease.Key.Kind != rl.Evaluate {
			t.Errorf("lease %+v is not of the evaluation", lease)
		}
		got = append(got, fmt.Sprintf("%d %s/%s/%d of %d", lease.Key.Slot, lease.Environment, lease.Split, lease.Task,
			lease.GroupSize))
	}
	want := []string{"0 b/test/0 of 2", "1 b/test/1 of 2", "2 a/x/0 of 1", "3 a/y/0 of 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
	other := NewSchedule(evaluating(func(f *contract.RunFile) {
		f.Evaluation.Environments[0].Sampling.Temperature = new(0.5)
	}))
	if other.Digest == schedule.Digest {
		t.Errorf("the digest does not depend on the temperature: got %v for both", other.Digest)
	}
	same := NewSchedule(evaluating(func(f *contract.RunFile) { f.Evaluation.EverySteps = 7 }))
	if same.Digest != schedule.Digest {
		t.Errorf("the digest depends on the interval: got %v, want %v", same.Digest, schedule.Digest)
	}
}

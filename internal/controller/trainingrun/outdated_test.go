// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestMarkOutdated tells a RewardEnvironment that has changed from one that is probed, is missing, or is the same.
func TestMarkOutdated(t *testing.T) {
	env := func(digest string, generation, observed int64) *v1alpha1.RewardEnvironment {
		e := &v1alpha1.RewardEnvironment{}
		e.Generation, e.Status.ObservedGeneration, e.Status.Digest = generation, &observed, digest
		return e
	}
	for name, tc := range map[string]struct {
		env   *v1alpha1.RewardEnvironment
		fixed bool
		want  bool
	}{
		"another spec":                     {env("new", 2, 2), true, true},
		"the same spec":                    {env("old", 2, 2), true, false},
		"a spec that is not probed yet":    {env("old", 3, 2), true, false},
		"a spec of which no digest exists": {env("", 2, 2), true, false},
		"none":                             {nil, true, false},
		"settings that are not fixed":      {env("new", 2, 2), false, false},
	} {
		run := &v1alpha1.TrainingRun{}
		run.Spec.Environments = []v1alpha1.TrainingEnvironment{{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "sums"}}}
		next := &v1alpha1.TrainingRunStatus{SettingsFixed: &tc.fixed, Environments: []v1alpha1.EnvironmentStatus{
			{Name: "sums", Digest: "old", Outdated: new(true)}}}
		markOutdated(run, next, map[string]*v1alpha1.RewardEnvironment{"sums": tc.env})
		if got := ptr.Deref(next.Environments[0].Outdated, false); got != tc.want {
			t.Errorf("%s: outdated is %t, want %t", name, got, tc.want)
		}
	}
}

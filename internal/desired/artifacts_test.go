// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"math"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// TestArtifactsOfLearner checks the learner's variables and volumes for each kind of store, and that workers have none
// of them.
func TestArtifactsOfLearner(t *testing.T) {
	cases := map[string]struct {
		artifacts *v1alpha1.Artifacts
		claim     string
		secret    string
		mounted   bool
	}{
		"none":            {nil, "", "", false},
		"claim":           {&v1alpha1.Artifacts{ClaimName: "runs"}, "runs", "", true},
		"URL":             {&v1alpha1.Artifacts{URL: "s3://b"}, "", "", true},
		"URL with a key":  {&v1alpha1.Artifacts{URL: "s3://b", SecretRef: &ref.Secret{Name: "keys"}}, "", "keys", true},
		"folder in a pod": {&v1alpha1.Artifacts{URL: "file:///data/runs"}, "", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := testRun()
			run.Spec.Artifacts = tc.artifacts
			learner := learnerTemplate(run, 1, "link", Settings{}).Spec
			claim, mounted := "", false
			for _, v := range learner.Volumes {
				if v.Name == artifactsVolume {
					mounted = true
					if v.PersistentVolumeClaim != nil {
						claim = v.PersistentVolumeClaim.ClaimName
					}
				}
			}
			secret := ""
			for _, source := range learner.Containers[0].EnvFrom {
				secret = source.SecretRef.Name
			}
			if claim != tc.claim || secret != tc.secret || mounted != tc.mounted {
				t.Errorf("claim %q, secret %q, mounted %v; want %q, %q, %v", claim, secret, mounted, tc.claim, tc.secret,
					tc.mounted)
			}
			if worker := rolloutTemplate(run, 1, "link", Settings{}).Spec.Containers[0]; len(worker.EnvFrom) > 0 {
				t.Errorf("a worker is given the keys of the artifacts: got %v, want none", worker.EnvFrom)
			}
		})
	}
}

// TestEpisodesOfRunFile checks that each selection of episodes reaches the run file.
func TestEpisodesOfRunFile(t *testing.T) {
	cases := map[string]struct {
		artifacts *v1alpha1.Artifacts
		recorded  int64
		none      bool
	}{
		"without artifacts": {nil, 0, false},
		"defaults":          {&v1alpha1.Artifacts{}, 4, false},
		"other groups":      {&v1alpha1.Artifacts{GroupsPerStep: new(int32(9))}, 9, false},
		"results only":      {&v1alpha1.Artifacts{GroupsPerStep: new(int32(0))}, 0, false},
		"all":               {&v1alpha1.Artifacts{Episodes: v1alpha1.EpisodesAll}, math.MaxInt32, false},
		"none":              {&v1alpha1.Artifacts{Episodes: v1alpha1.EpisodesNone}, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := testRun()
			run.Spec.Artifacts = tc.artifacts
			admit.Default(run)
			var file contract.RunFile
			addArtifacts(&file, run.Spec.Artifacts)
			if file.RecordedGroups != tc.recorded || file.NoEpisodes != tc.none {
				t.Errorf("%d groups are recorded and no episodes at all: %v, want %d and %v", file.RecordedGroups, file.NoEpisodes,
					tc.recorded, tc.none)
			}
		})
	}
}

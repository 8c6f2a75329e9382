// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// gated returns a run with a tokenizer of a gated repository. If secret is not empty, the run has a token from that
// Secret.
func gated(secret string) *v1alpha1.TrainingRun {
	return testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: "org/gated"}
		if secret != "" {
			run.Spec.Model.Tokenizer.TokenSecretKeyRef = &ref.SecretKey{Name: secret, Key: "TOKEN"}
		}
	})
}

// tokenFiles lists the variables that name a file with the token of the Secret hf, as "container: variable = key".
func tokenFiles(pod corev1.PodSpec) []string {
	var found []string
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, mount := range container.VolumeMounts {
			at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			secret := pod.Volumes[at].Secret
			if secret == nil || secret.SecretName != "hf" {
				continue
			}
			file := mount.MountPath + "/" + secret.Items[0].Path
			for _, v := range container.Env {
				if v.Value == file && *secret.Optional {
					found = append(found, container.Name+": "+v.Name+" = "+secret.Items[0].Key)
				}
			}
		}
	}
	return found
}

// TestOnlyThePodsThatDownloadHaveTheTokenOfTheTokenizer checks that the token is a file of the learner and of the
// workers. The run file, which an older manager may read, and its digest have no trace of the token.
func TestOnlyThePodsThatDownloadHaveTheTokenOfTheTokenizer(t *testing.T) {
	run := gated("hf")
	for container, pod := range map[string]corev1.PodSpec{
		LearnerContainer: learnerTemplate(run, 1, "link", Settings{}).Spec,
		RolloutContainer: rolloutTemplate(run, 1, "link", Settings{}).Spec,
	} {
		want := []string{container + ": " + contract.TokenizerTokenVariable + " = TOKEN"}
		if diff := cmp.Diff(want, tokenFiles(pod)); diff != "" {
			t.Errorf("token of the pod %s (-want +got):\n%s", container, diff)
		}
	}
	for name, pod := range map[string]corev1.PodSpec{
		"learner": learnerTemplate(gated(""), 1, "link", Settings{}).Spec,
		"rollout": rolloutTemplate(gated(""), 1, "link", Settings{}).Spec,
	} {
		if slices.ContainsFunc(pod.Containers[0].Env,
			func(v corev1.EnvVar) bool { return v.Name == contract.TokenizerTokenVariable }) {
			t.Errorf("the pod %s of a run without token has the variables %v", name, pod.Containers[0].Env)
		}
	}
	with, err := ModelOf(run.Spec.Model, run.CreationTimestamp.Time, nil)
	if err != nil {
		t.Fatal(err)
	}
	without, err := ModelOf(gated("").Spec.Model, run.CreationTimestamp.Time, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("the run file of a run with a token differs (-without +with):\n%s", diff)
	}
}

// TestTokenOfTheTokenizerMayChange checks that another token restarts the learner and replaces the workers, and does
// not count as a change of the weights. The Job of a run without a token notes no token.
func TestTokenOfTheTokenizerMayChange(t *testing.T) {
	if got := learnerSettings(gated("")); strings.Contains(got, FieldTokenizerToken) {
		t.Errorf("the settings of a run without token are %s, want none of %s", got, FieldTokenizerToken)
	}
	for name, tc := range map[string]struct {
		was, is *v1alpha1.TrainingRun
		changed bool
	}{
		"no token":      {gated(""), gated(""), false},
		"the same":      {gated("hf"), gated("hf"), false},
		"a first token": {gated(""), gated("hf"), true},
		"another token": {gated("hf"), gated("rotated"), true},
		"token removed": {gated("hf"), gated(""), true},
	} {
		t.Run(name, func(t *testing.T) {
			job := LearnerJob(tc.was, 1, "link", Settings{})
			var want []string
			if tc.changed {
				want = []string{FieldTokenizerToken}
			}
			if diff := cmp.Diff(want, PendingChanges(tc.is, job)); diff != "" {
				t.Errorf("pending changes (-want +got):\n%s", diff)
			}
			if got := ChangedKey(tc.is, job); got != strings.Join(want, "") {
				t.Errorf("ChangedKey = %q, want %q", got, want)
			}
			if changed, known := ChangedSettings(tc.is, job.Annotations); !known || len(changed) > 0 {
				t.Errorf("ChangedSettings = %v, %v, want none and true", changed, known)
			}
			same := RolloutTemplateDigest(tc.was) == RolloutTemplateDigest(tc.is)
			if same == tc.changed {
				t.Errorf("the workers' template is the same: %v, want %v", same, !tc.changed)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	apitracking "github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
)

// TestTrackingKeys checks that only the learner has the key, from a Secret that need not exist.
func TestTrackingKeys(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Tracking = &apitracking.Tracking{WandB: &apitracking.WandB{
			Project: "p", BaseURL: "https://api.wandb.ai", Tags: []string{"b", "a"},
			APIKeySecretKeyRef: ref.SecretKey{Name: "wandb", Key: "K"},
		}}
	})
	keys := func(pod corev1.PodSpec) map[string]string {
		found := map[string]string{}
		for _, v := range pod.Volumes {
			if v.Name != wandbVolume && v.Name != mlflowVolume && v.Name != openRewardVolume {
				continue
			}
			if !*v.Secret.Optional {
				t.Error("the pod waits for the Secret")
			}
			for _, m := range pod.Containers[0].VolumeMounts {
				if m.Name == v.Name {
					found[m.MountPath+"/"+v.Secret.Items[0].Path] = v.Secret.SecretName + "/" + v.Secret.Items[0].Key
				}
			}
		}
		return found
	}
	want := &tracking.Settings{WandB: &tracking.WandB{
		Project: "p", BaseURL: "https://api.wandb.ai", RunName: run.Name, Tags: []string{"a", "b"},
		KeyFile: "/etc/tinker-operator/tracking/wandb/key",
	}}
	if diff := cmp.Diff(want, trackingServices(run)); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{want.WandB.KeyFile: "wandb/K"},
		keys(learnerTemplate(run, 1, "link", Settings{}).Spec)); diff != "" {
		t.Errorf("keys of the learner (-want +got):\n%s", diff)
	}
	if got := keys(rolloutTemplate(run, 1, "link", Settings{}).Spec); len(got) > 0 {
		t.Errorf("a worker is given %v", got)
	}
	run.Spec.Tracking = &apitracking.Tracking{TensorBoard: &apitracking.TensorBoard{}}
	want = &tracking.Settings{TensorBoard: &tracking.TensorBoard{RunName: run.Name}}
	if diff := cmp.Diff(want, trackingServices(run)); diff != "" {
		t.Errorf("settings of TensorBoard (-want +got):\n%s", diff)
	}
	token := &ref.SecretKey{Name: "mlflow", Key: "token"}
	for name, m := range map[string]apitracking.MLflow{
		"a token": {TokenSecretKeyRef: token}, "a password": {Username: "me", PasswordSecretKeyRef: token},
		"no authentication": {},
	} {
		m.BaseURL, m.Experiment = "http://mlflow/", "e"
		run.Spec.Tracking = &apitracking.Tracking{MLflow: &m}
		want := &tracking.Settings{MLflow: &tracking.MLflow{BaseURL: "http://mlflow", Experiment: "e", RunName: run.Name,
			Username: m.Username}}
		wantKeys := map[string]string{}
		if name != "no authentication" {
			want.MLflow.KeyFile = "/etc/tinker-operator/tracking/mlflow/key"
			wantKeys[want.MLflow.KeyFile] = "mlflow/token"
		}
		if diff := cmp.Diff(want, trackingServices(run)); diff != "" {
			t.Errorf("settings of MLflow with %s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(wantKeys, keys(learnerTemplate(run, 1, "link", Settings{}).Spec)); diff != "" {
			t.Errorf("keys of the learner for MLflow with %s (-want +got):\n%s", name, diff)
		}
		if got := keys(rolloutTemplate(run, 1, "link", Settings{}).Spec); len(got) > 0 {
			t.Errorf("a worker is given %v", got)
		}
	}
	for address, api := range map[string]string{"": "https://api.openreward.ai",
		"http://host:8080/": "http://api.host:8080"} {
		run.Spec.Tracking = &apitracking.Tracking{OpenReward: &apitracking.OpenReward{BaseURL: address,
			APIKeySecretKeyRef: ref.SecretKey{Name: "o", Key: "k"}}}
		want := &tracking.Settings{OpenReward: &tracking.OpenReward{BaseURL: api, RunName: run.Name,
			KeyFile: "/etc/tinker-operator/tracking/openreward/key"}}
		if diff := cmp.Diff(want, trackingServices(run)); diff != "" {
			t.Errorf("settings of OpenReward (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{want.OpenReward.KeyFile: "o/k"},
			keys(learnerTemplate(run, 1, "link", Settings{}).Spec)); diff != "" {
			t.Errorf("keys of the learner for OpenReward (-want +got):\n%s", diff)
		}
		if got := keys(rolloutTemplate(run, 1, "link", Settings{}).Spec); len(got) > 0 {
			t.Errorf("a worker is given %v", got)
		}
	}
	run.Spec.Tracking = nil
	if got := trackingServices(run); got != nil {
		t.Errorf("a run without tracking has the settings %v", got)
	}
}

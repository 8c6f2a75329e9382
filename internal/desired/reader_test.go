// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestReaderPodMountsArtifactsAndHasNoAPIKey(t *testing.T) {
	run := testRun()
	run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
	run.Spec.Override(v1alpha1.TargetLearner).InitContainers = []v1alpha1.InitContainer{{Name: "fetch", Image: "fetch:1"}}
	run.Spec.Override(v1alpha1.TargetLearner).ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	with := Settings{Image: "operator:1",
		PodDefaults: v1alpha1.PodOverrides{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}}
	got := ReaderPod(run, "reader", "node-1", []string{"transcripts"}, with)
	container := got.Spec.Containers[0]
	if len(got.Spec.InitContainers)+len(got.Spec.ResourceClaims) > 0 {
		t.Errorf("a reader has the init containers %v and the claims %v", got.Spec.InitContainers, got.Spec.ResourceClaims)
	}
	if container.Image != "operator:1" || container.Command[0] != "/learner" || container.Args[0] != "transcripts" {
		t.Errorf("the container is %+v", container)
	}
	if slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "TINKER_API_KEY" }) {
		t.Errorf("a reader has the API key: got the variables %v", container.Env)
	}
	if v := got.Spec.Volumes; len(v) != 1 || v[0].PersistentVolumeClaim == nil ||
		v[0].PersistentVolumeClaim.ClaimName != "runs" {
		t.Errorf("the volumes are %+v, want the claim alone", v)
	}
	if got.Spec.ImagePullSecrets[0].Name != "pull" || got.Spec.RestartPolicy != corev1.RestartPolicyNever ||
		*got.Spec.ActiveDeadlineSeconds != 600 {
		t.Errorf("the pod is %+v", got.Spec)
	}
	terms := got.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if diff := cmp.Diff([]string{"node-1"}, terms[0].MatchFields[0].Values); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
	if owner := got.OwnerReferences[0]; owner.Controller != nil || owner.BlockOwnerDeletion != nil ||
		owner.UID != run.UID {
		t.Errorf("the owner is %+v, which somebody who may create pods alone could be refused", owner)
	}
	if got.Labels[v1alpha1.LabelRole] != v1alpha1.RoleReader {
		t.Errorf("the labels are %v, by which the manager could take the pod for a learner", got.Labels)
	}

	run.Spec.Artifacts = &v1alpha1.Artifacts{URL: "s3://b/p", SecretRef: &ref.Secret{Name: "keys"}}
	env := ReaderPod(run, "reader", "", nil, with).Spec.Containers[0].EnvFrom
	if len(env) != 1 || env[0].SecretRef.Name != "keys" {
		t.Errorf("the keys of the store are %+v", env)
	}
}

func TestPodSettingsAreThoseOfTheRunFile(t *testing.T) {
	run := testRun()
	with := Settings{Image: "operator:1", PodDefaults: v1alpha1.PodOverrides{ServiceAccountName: "runs"}}
	file, err := RunFile(run, testRunFile(t, run), testPins(), with)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := PodSettings(file.Annotations)
	if diff := cmp.Diff(with, got); !ok || diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if _, ok := PodSettings(nil); ok {
		t.Error("a run file without the annotation has settings")
	}
}

func testRunFile(t *testing.T, run *v1alpha1.TrainingRun) contract.RunFile {
	t.Helper()
	file, err := File(FileInput{Run: run, Attempt: 2, Pins: testPins(), DefaultBaseURL: "https://hosted"})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRelayPodHasTheTokenAndTheAuthorityAlone checks the pod that sends a person's requests to the TinkerEndpoint of a
// run.
func TestRelayPodHasTheTokenAndTheAuthorityAlone(t *testing.T) {
	run := testRun()
	run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"}
	run.Spec.Tinker = v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: "prod"}}
	with := Settings{Image: "operator:1"}
	got := RelayPod(run, "relay", "token", 2, "127.0.0.1:1", with)
	reader := ReaderPod(run, "relay", "", nil, with)
	container := got.Spec.Containers[0]
	if key := container.Env[0].ValueFrom.SecretKeyRef; key.Name != "token" || key.Key != contract.TokenKey {
		t.Errorf("the pod has the key %+v", key)
	}
	for _, v := range got.Spec.Volumes {
		if v.ConfigMap == nil || v.ConfigMap.Name != RunFileName(run, 2) {
			t.Errorf("the pod has the volume %+v, want the run file alone", v)
		}
	}
	want := []string{"relay", "--listen=127.0.0.1:1", "--run-file=" + runDir + "/run.json"}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	// Everything else is as in a reader: the labels that NetworkPolicies select, the owner, the deadline and the
	// security.
	got.Spec.Volumes, got.Spec.Containers = reader.Spec.Volumes, reader.Spec.Containers
	if diff := cmp.Diff(reader, got); diff != "" {
		t.Errorf("beside a reader (-reader +relay):\n%s", diff)
	}
	if diff := cmp.Diff(reader.Spec.Containers[0].SecurityContext, container.SecurityContext); diff != "" {
		t.Errorf("security (-reader +relay):\n%s", diff)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// fromPool returns the pins of an environment whose reward runs in pods of the warm pool "python", and its program.
func fromPool(t *testing.T, replicas int32) (Pins, PoolProgram) {
	t.Helper()
	pins := inPods(&v1alpha1.ExecutionPods{Replicas: replicas, Network: environment.PodNetworkNone,
		WarmPoolRef: &v1alpha1.WarmPoolRef{Name: "python"}})
	programs, err := PoolPrograms(pins.Servers())
	if err != nil || len(programs) != 1 {
		t.Fatalf("PoolPrograms = %v, %v, want one program", programs, err)
	}
	return pins, programs[0]
}

// TestProgramOfWarmPool expects that a program of a warm pool has no Deployment, and that workers have the certificate
// of the pool, but not its key.
func TestProgramOfWarmPool(t *testing.T) {
	run, settings := testRun(), Settings{Image: "operator:dev", PythonImage: "python:dev"}
	pins, program := fromPool(t, 3)
	want := PoolProgram{ID: pins["own"].Definition.ProgramID(), Pool: "python", Replicas: 3,
		Network: environment.PodNetworkNone}
	if diff := cmp.Diff(want, program); diff != "" {
		t.Errorf("the program (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"python"}, pins.Pools()); diff != "" {
		t.Errorf("the pools of the pins (-want +got):\n%s", diff)
	}
	if made, err := ProgramPods(run, pins.Servers(), "suffix", settings); err != nil || len(made) != 0 {
		t.Errorf("ProgramPods = %v, %v, want none", made, err)
	}
	job := RolloutJob(run, 1, "credentials", settings)
	if err := RunServers(job, pins.Servers(), ServiceName(run), settings); err != nil {
		t.Fatal(err)
	}
	worker := job.Spec.Template.Spec
	var keys []corev1.KeyToPath
	for _, volume := range worker.Volumes {
		if volume.Secret != nil && volume.Secret.SecretName == "python-runner" {
			keys = append(keys, volume.Secret.Items...)
		}
	}
	if diff := cmp.Diff([]corev1.KeyToPath{{Key: "tls.crt", Path: "tls.crt"}}, keys); diff != "" {
		t.Errorf("the keys of the pool's Secret that workers have (-want +got):\n%s", diff)
	}
	mounted := false
	for _, mount := range worker.Containers[0].VolumeMounts {
		mounted = mounted || mount.MountPath+"/tls.crt" == contract.WarmPoolCertificate("python")
	}
	if !mounted || len(worker.InitContainers) != 0 {
		t.Errorf("the workers have mounts %v and sidecars %v", worker.Containers[0].VolumeMounts, worker.InitContainers)
	}
}

// TestClaims expects one claim for each pod. A claim changes nothing that would need a new pod, and has no secret.
func TestClaims(t *testing.T) {
	run := testRun()
	_, program := fromPool(t, 3)
	claims, err := program.Claims(run, "the run's token")
	if err != nil || len(claims) != 3 {
		t.Fatalf("Claims = %v, %v, want three", claims, err)
	}
	secrets, err := contract.DeriveProgramCredentials("the run's token", program.ID)
	if err != nil {
		t.Fatal(err)
	}
	service := program.Service(run)
	want := map[string]any{
		"warmPoolRef": map[string]any{"name": "python"},
		"additionalPodMetadata": map[string]any{
			"labels":      map[string]any{v1alpha1.LabelPoolProgram: service.Name},
			"annotations": map[string]any{v1alpha1.AnnotationProgramToken: secrets.TokenSHA256()},
		},
	}
	names := map[string]bool{}
	for _, claim := range claims {
		names[claim.GetName()] = true
		if diff := cmp.Diff(want, claim.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", claim.GetName(), diff)
		}
		text, err := json.Marshal(claim)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secrets.Token) || strings.Contains(string(text), "the run's token") {
			t.Errorf("%s has a token", claim.GetName())
		}
		if len(claim.GetName()) > 63 || !metav1.IsControlledBy(claim, run) {
			t.Errorf("%s belongs to %v", claim.GetName(), claim.GetOwnerReferences())
		}
	}
	if len(names) != 3 {
		t.Errorf("the claims have the names %v", names)
	}
	again, err := program.Claims(run, "the run's token")
	if diff := cmp.Diff(claims, again); err != nil || diff != "" {
		t.Errorf("the same claims made again: %v, (-want +got):\n%s", err, diff)
	}
	other, err := program.Claims(run, "another token")
	if err != nil || names[other[0].GetName()] {
		t.Errorf("claims with another token: %v, want other names", err)
	}
}

// TestNetworkOfWarmPool expects that only the run's workers may connect.
func TestNetworkOfWarmPool(t *testing.T) {
	run := testRun()
	_, program := fromPool(t, 1)
	policy, service := program.Policy(run), program.Service(run)
	selected := map[string]string{v1alpha1.LabelPoolProgram: service.Name}
	if diff := cmp.Diff(selected, policy.Spec.PodSelector.MatchLabels); diff != "" {
		t.Errorf("the policy selects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(selected, service.Spec.Selector); diff != "" || service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("the Service has the address %q and selects (-want +got):\n%s", service.Spec.ClusterIP, diff)
	}
	want := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	if diff := cmp.Diff(want, policy.Spec.PolicyTypes); diff != "" || policy.Spec.Egress != nil {
		t.Errorf("egress %v, types (-want +got):\n%s", policy.Spec.Egress, diff)
	}
	if diff := cmp.Diff(RolloutLabels(run), policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels); diff != "" {
		t.Errorf("who may connect (-want +got):\n%s", diff)
	}
}

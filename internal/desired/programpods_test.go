// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// inPods returns the pins of an environment whose reward runs in pods.
func inPods(pods *v1alpha1.ExecutionPods) Pins {
	execution := &v1alpha1.Execution{
		FunctionImage: environment.FunctionImage{Image: "own:1", Placement: environment.PlacementPods}, Pods: pods,
		Container: v1alpha1.Container{
			Env: []corev1.EnvVar{{Name: "THRESHOLD", Value: "1"}, {Name: protocol.TokenVariable, Value: "the user's"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				"nvidia.com/gpu": resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("464Mi")}}},
	}
	env := pythonEnvironment("own", execution, environment.Python{Source: inline(rewardCode)})
	return Pins{"own": {Definition: Definition(env.Spec)}}
}

func programPodsOf(t *testing.T, run *v1alpha1.TrainingRun, pins Pins, settings Settings) *appsv1.Deployment {
	t.Helper()
	made, err := ProgramPods(run, pins.Servers(), "suffix", settings)
	if err != nil || len(made) != 1 {
		t.Fatalf("ProgramPods = %v, %v, want one Deployment", made, err)
	}
	return made[0]
}

// TestProgramsInPods expects a Deployment with the settings of the environment, and without the secrets of the
// workers.
func TestProgramsInPods(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		by := run.Spec.Override(v1alpha1.TargetWorkers)
		by.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		by.ServiceAccountName = "cloud"
		by.Volumes = []v1alpha1.Volume{{Name: "own", EmptyDir: &corev1.EmptyDirVolumeSource{}}}
		by.NodeSelector = map[string]string{"pool": "workers"}
	})
	pins := inPods(&v1alpha1.ExecutionPods{Replicas: 3, Network: environment.PodNetworkNone, RuntimeClassName: "nvidia",
		NodeSelector: map[string]string{"pool": "gpu"}, Tolerations: []corev1.Toleration{{Key: "gpu",
			Operator: corev1.TolerationOpExists}}})
	settings := Settings{Image: "operator:dev", PythonImage: "python:dev"}
	d := programPodsOf(t, run, pins, settings)
	spec := d.Spec.Template.Spec
	if len(d.Name) > 63 || *d.Spec.Replicas != 3 || *spec.RuntimeClassName != "nvidia" ||
		spec.NodeSelector["pool"] != "gpu" {
		t.Errorf("Deployment %s has %d replicas, runtime class %v and node selector %v", d.Name, *d.Spec.Replicas,
			spec.RuntimeClassName, spec.NodeSelector)
	}
	if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "gpu" }) {
		t.Errorf("the tolerations are %v", spec.Tolerations)
	}
	if spec.ServiceAccountName != "" || *spec.AutomountServiceAccountToken || len(spec.ImagePullSecrets) != 1 {
		t.Errorf("service account %q, token %v, pull secrets %v", spec.ServiceAccountName,
			*spec.AutomountServiceAccountToken, spec.ImagePullSecrets)
	}
	for _, volume := range spec.Volumes {
		if volume.EmptyDir == nil || volume.Name == "own" {
			t.Errorf("the pods have the volume %s of the workers", volume.Name)
		}
	}
	if len(spec.Containers) != 1 || len(spec.InitContainers) != 1 || spec.InitContainers[0].Name != runnerContainer {
		t.Fatalf("containers %v, init containers %v", spec.Containers, spec.InitContainers)
	}
	container := spec.Containers[0]
	want := []string{runnerProgram, "--listen", ":7445", "--scratch", scratchDir}
	if diff := cmp.Diff(want, container.Command); diff != "" || container.Image != "own:1" ||
		container.Resources.Limits["nvidia.com/gpu"] != resource.MustParse("1") {
		t.Errorf("image %s, limits %v, command (-want +got):\n%s", container.Image, container.Resources.Limits, diff)
	}
	secrets := map[string]string{}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil {
			secrets[variable.Name] = variable.ValueFrom.SecretKeyRef.Name + " " + variable.ValueFrom.SecretKeyRef.Key
		}
	}
	secret := ProgramSecretName(run, pins["own"].Definition.ProgramID(), "suffix")
	if diff := cmp.Diff(map[string]string{protocol.CertificateVariable: secret + " tls.crt",
		protocol.KeyVariable: secret + " tls.key", protocol.TokenVariable: secret + " token.sha256"}, secrets); diff != "" {
		t.Errorf("variables of Secrets (-want +got):\n%s", diff)
	}
}

// TestPodsBesideProgramsInPods expects that workers have no sidecar for the program, and that a probe has one and runs
// on the nodes of such pods.
func TestPodsBesideProgramsInPods(t *testing.T) {
	run, settings := testRun(), Settings{Image: "operator:dev", PythonImage: "python:dev"}
	pins := inPods(&v1alpha1.ExecutionPods{Replicas: 3, RuntimeClassName: "nvidia"})
	job := RolloutJob(run, 1, "credentials", settings)
	if err := RunServers(job, pins.Servers(), ServiceName(run), settings); err != nil {
		t.Fatal(err)
	}
	worker := job.Spec.Template.Spec
	prefix := corev1.EnvVar{Name: contract.SharedServersVariable, Value: ServiceName(run)}
	if len(worker.InitContainers) != 0 || !slices.Contains(worker.Containers[0].Env, prefix) {
		t.Errorf("the workers have sidecars %v and variables %v", worker.InitContainers, worker.Containers[0].Env)
	}
	probe := RolloutJob(run, 1, "credentials", settings)
	if err := RunServers(probe, pins.Servers(), "", settings); err != nil {
		t.Fatal(err)
	}
	if pod := probe.Spec.Template.Spec; len(pod.InitContainers) != 2 || *pod.RuntimeClassName != "nvidia" {
		t.Errorf("a probe has sidecars %v and runtime class %v", pod.InitContainers, pod.RuntimeClassName)
	}
}

// TestNetworkOfProgramsInPods checks the permitted connections to and from the pods.
func TestNetworkOfProgramsInPods(t *testing.T) {
	run := testRun()
	for network, want := range map[environment.PodNetwork][]networkingv1.PolicyType{
		environment.PodNetworkNone: {networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		environment.PodNetworkOpen: {networkingv1.PolicyTypeIngress},
	} {
		d := programPodsOf(t, run, inPods(&v1alpha1.ExecutionPods{Replicas: 1, Network: network}), Settings{Image: "o"})
		policy := ProgramPolicy(run, d)
		if diff := cmp.Diff(want, policy.Spec.PolicyTypes); diff != "" || policy.Spec.Egress != nil {
			t.Errorf("%s: egress %v, types (-want +got):\n%s", network, policy.Spec.Egress, diff)
		}
		if diff := cmp.Diff(d.Spec.Selector, &policy.Spec.PodSelector); diff != "" {
			t.Errorf("%s: the policy selects other pods (-want +got):\n%s", network, diff)
		}
		for key, value := range policy.Spec.PodSelector.MatchLabels {
			if d.Spec.Template.Labels[key] != value {
				t.Errorf("%s: pods lack the label %s=%s", network, key, value)
			}
		}
		from := policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels
		if diff := cmp.Diff(RolloutLabels(run), from); diff != "" || len(policy.Spec.Ingress) != 1 {
			t.Errorf("%s: who may connect (-want +got):\n%s", network, diff)
		}
		if service := ProgramService(d); service.Spec.ClusterIP != corev1.ClusterIPNone || service.Name != d.Name {
			t.Errorf("%s: Service %s has the address %q, want none", network, service.Name, service.Spec.ClusterIP)
		}
	}
}

// TestSecretOfProgramsInPods checks that the Secret of a program has no secret of the run.
func TestSecretOfProgramsInPods(t *testing.T) {
	run := testRun()
	secret, err := ProgramSecret(run, "0123456789abcdef", "the run's token", "suffix")
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := contract.DeriveProgramCredentials("the run's token", "0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range secret.Data {
		if strings.Contains(string(value), credentials.Token) || strings.Contains(string(value), "the run's token") {
			t.Errorf("key %s has a token", key)
		}
	}
	if string(secret.Data[contract.ProgramTokenKey]) != credentials.TokenSHA256() || len(secret.Data) != 3 {
		t.Errorf("the Secret has %v", secret.Data)
	}
}

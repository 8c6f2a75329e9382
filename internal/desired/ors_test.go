// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// serverOnly returns an environment with a server of an image.
func serverOnly(image environment.ServerImage) v1alpha1.ORSEnvironment {
	return v1alpha1.ORSEnvironment{Server: &v1alpha1.ORSServer{ServerImage: image}}
}

// orsEnvironment returns an environment of a server, with its defaults.
func orsEnvironment(ors v1alpha1.ORSEnvironment) *v1alpha1.RewardEnvironment {
	env := testEnvironment()
	env.Spec = v1alpha1.RewardEnvironmentSpec{ORS: &ors}
	admit.Default(env)
	return env
}

func TestDefinitionOfServers(t *testing.T) {
	cases := map[string]struct {
		spec v1alpha1.ORSEnvironment
		want contract.ORS
	}{
		"a URL": {v1alpha1.ORSEnvironment{ORS: environment.ORS{URL: "http://sums:8080", Environment: "sums"}},
			contract.ORS{ORS: environment.ORS{URL: "http://sums:8080", Environment: "sums"}}},
		"a hosted environment": {
			v1alpha1.ORSEnvironment{ORS: environment.ORS{
				Name: "Owner/Name@hard", Toolset: "claude-code", APIKeySecretKeyRef: &ref.SecretKey{Name: "openreward", Key: "KEY"},
				Secrets: []environment.SessionSecret{{Name: "JUDGE", SecretKeyRef: ref.SecretKey{Name: "judge", Key: "k"},
					AllowedHosts: []string{"h"}}},
				MaxSessions: 16, AnswerTool: &environment.AnswerTool{Name: "submit", Argument: "answer"},
			}},
			contract.ORS{ORS: environment.ORS{
				Name: "Owner/Name@hard", URL: "https://sessions.openreward.ai", Environment: "hard", Toolset: "claude-code",
				APIKeySecretKeyRef: &ref.SecretKey{Name: "openreward", Key: "KEY"},
				Secrets: []environment.SessionSecret{{Name: "JUDGE", SecretKeyRef: ref.SecretKey{Name: "judge", Key: "k"},
					AllowedHosts: []string{"h"}}},
				MaxSessions: 16, AnswerTool: &environment.AnswerTool{Name: "submit", Argument: "answer"},
			}},
		},
		"an image": {
			v1alpha1.ORSEnvironment{Server: &v1alpha1.ORSServer{
				ServerImage: environment.ServerImage{Image: "sums:dev", Command: []string{"serve"}},
				Container:   v1alpha1.Container{Env: []corev1.EnvVar{{Name: "FAMILY", Value: "chain_sum"}}}}},
			contract.ORS{ORS: environment.ORS{URL: "http://127.0.0.1:8080"}, Server: &contract.Server{
				ServerImage: environment.ServerImage{Image: "sums:dev", Port: 8080, Command: []string{"serve"}},
				Container:   contract.Container{Env: []byte(`[{"name":"FAMILY","value":"chain_sum"}]`)},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.SecretDelivery = environment.DeliverHeader
			tc.want.Timeouts = environment.ORSTimeouts{CreateSeconds: 120, CallSeconds: 300}
			definition := Definition(orsEnvironment(tc.spec).Spec)
			if diff := cmp.Diff(contract.Definition{ORS: &tc.want}, definition); diff != "" {
				t.Errorf("Definition (-want +got):\n%s", diff)
			}
			if err := definition.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

func TestServersRunBesideWorkers(t *testing.T) {
	env := orsEnvironment(v1alpha1.ORSEnvironment{
		Server: &v1alpha1.ORSServer{ServerImage: environment.ServerImage{Image: "sums:dev"}, Container: v1alpha1.Container{
			Env: []corev1.EnvVar{{Name: "FAMILY", Value: "chain_sum"},
				{Name: "PORT", Value: "1"}}}},
		ORS: environment.ORS{APIKeySecretKeyRef: &ref.SecretKey{Name: "openreward", Key: "KEY"}},
	})
	pins := Pins{"sums": {Definition: Definition(env.Spec)}}
	if diff := cmp.Diff("secret/openreward", pins.Data()); diff != "" {
		t.Errorf("Data (-want +got):\n%s", diff)
	}
	job := RolloutJob(testRun(), 1, "credentials", Settings{Image: "operator:dev"})
	if err := RunServers(job, pins.Servers(), "prefix", Settings{}); err != nil {
		t.Fatalf("RunServers: %v", err)
	}
	if ServersOf(job) != pins.Servers() {
		t.Errorf("the Job says %q, want %q", ServersOf(job), pins.Servers())
	}
	spec := job.Spec.Template.Spec
	if len(spec.InitContainers) != 1 {
		t.Fatalf("the pods have %d init containers, want one", len(spec.InitContainers))
	}
	server := spec.InitContainers[0]
	if got := server.Resources.Requests[corev1.ResourceEphemeralStorage]; got.String() != "320Mi" {
		t.Errorf("the server requests %s of the node's disk, want 320Mi", got.String())
	}
	if *server.RestartPolicy != corev1.ContainerRestartPolicyAlways || server.Image != "sums:dev" {
		t.Errorf("the server is not a sidecar: %+v", server)
	}
	if server.StartupProbe != nil || server.LivenessProbe.InitialDelaySeconds < 60 {
		t.Errorf("the worker waits for the server, or the server has no time to start: %+v", server)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "PORT", Value: "8080"}, {Name: "FAMILY", Value: "chain_sum"}},
		server.Env); diff != "" {
		t.Errorf("the server's environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(spec.Containers[0].SecurityContext, server.SecurityContext); diff != "" {
		t.Errorf("the server's rights differ from the worker's (-worker +server):\n%s", diff)
	}
	probe := ProbeJob(env, "0123456789", 1, Settings{Image: "operator:dev"})
	if got := probe.Spec.Template.Spec.InitContainers; len(got) != 1 || got[0].Image != "sums:dev" ||
		got[0].StartupProbe == nil {
		t.Errorf("the probe's init containers are %+v", got)
	}
}

// TestSharedServersRunOnce expects that a shared server has a Deployment and no sidecar in the workers, and that a
// probe has a sidecar.
func TestSharedServersRunOnce(t *testing.T) {
	env := orsEnvironment(serverOnly(environment.ServerImage{Image: "world:dev", Shared: true}))
	pins := Pins{"world": {Definition: Definition(env.Spec)}}
	run, settings := testRun(), Settings{Image: "operator:dev"}
	job := RolloutJob(run, 1, "credentials", settings)
	if err := RunServers(job, pins.Servers(), ServiceName(run), Settings{}); err != nil {
		t.Fatal(err)
	}
	worker := job.Spec.Template.Spec
	want := corev1.EnvVar{Name: contract.SharedServersVariable, Value: ServiceName(run)}
	if len(worker.InitContainers) != 0 || !slices.Contains(worker.Containers[0].Env, want) {
		t.Errorf("workers have %d init containers and the environment %v", len(worker.InitContainers),
			worker.Containers[0].Env)
	}
	run.Spec.Override(v1alpha1.TargetWorkers).InitContainers = []v1alpha1.InitContainer{{Name: "fetch", Image: "fetch:1"}}
	run.Spec.Override(v1alpha1.TargetWorkers).ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	deployments, err := SharedServers(run, pins.Servers(), settings)
	if err != nil || len(deployments) != 1 {
		t.Fatalf("SharedServers = %v, %v", deployments, err)
	}
	d, service := deployments[0], SharedService(deployments[0])
	pod := d.Spec.Template.Spec
	if len(pod.InitContainers)+len(pod.ResourceClaims) > 0 {
		t.Errorf("the server has the init containers %v and the claims %v", pod.InitContainers, pod.ResourceClaims)
	}
	if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType ||
		len(pod.Containers) != 1 ||
		pod.Containers[0].Image != "world:dev" || pod.Containers[0].RestartPolicy != nil ||
		pod.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("the Deployment is %+v", d.Spec)
	}
	if diff := cmp.Diff(worker.SecurityContext, pod.SecurityContext); diff != "" ||
		pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("the server's rights differ from the worker's (-worker +server):\n%s", diff)
	}
	if diff := cmp.Diff(service.Spec.Selector, d.Spec.Selector.MatchLabels); diff != "" || !isSubset(service.Spec.Selector,
		d.Spec.Template.Labels) {
		t.Errorf("the Service does not lead to the pods (-service +deployment):\n%s", diff)
	}
	address := fmt.Sprintf("http://%s:%d", service.Name, service.Spec.Ports[0].Port)
	if got := pins["world"].Definition.ORS.URLFor(ServiceName(run)); got != address {
		t.Errorf("workers call %s, and the Service is %s", got, address)
	}
	if got := ProbeJob(env, "0123456789", 1, settings).Spec.Template.Spec.InitContainers; len(got) != 1 {
		t.Errorf("the probe has %d servers beside itself, want 1", len(got))
	}
}

func isSubset(some, all map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}

func TestServersNeedPortsOfTheirOwn(t *testing.T) {
	pin := Pin{Definition: Definition(orsEnvironment(serverOnly(environment.ServerImage{Image: "a"})).Spec)}
	other := Pin{Definition: Definition(orsEnvironment(serverOnly(environment.ServerImage{Image: "a",
		Port: 8090})).Spec)}
	if err := (Pins{"a": pin, "b": other}).CheckPorts(); err != nil {
		t.Errorf("CheckPorts of two ports: %v", err)
	}
	if err := (Pins{"a": pin, "b": other, "c": pin}).CheckPorts(); err == nil || !strings.Contains(err.Error(),
		`"a" and "c" both serve on port 8080`) {
		t.Errorf("CheckPorts of one port twice: %v, want an error about the port", err)
	}
}

// TestNamesOfServerContainers names the containers of environments whose names begin alike, and are longer than a
// container's name may be.
func TestNamesOfServerContainers(t *testing.T) {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "n", UID: "0123456789"}}
	admit.Default(run)
	pins := Pins{}
	long := "reasoning-gym-propositional-logic-five-variables-and-eight-rules"
	for i, name := range []string{"short", long + "-a", long + "-b", long[:50] + "-five"} {
		pins[name] = Pin{Definition: contract.Definition{ORS: &contract.ORS{Server: &contract.Server{
			ServerImage: environment.ServerImage{Image: "i",
				Port: int32(8080 + i)}}}}}
	}
	job := RolloutJob(run, 1, "link", Settings{})
	if err := RunServers(job, pins.Servers(), "prefix", Settings{}); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, c := range job.Spec.Template.Spec.InitContainers {
		if problems := validation.IsDNS1123Label(c.Name); named[c.Name] || len(problems) > 0 {
			t.Errorf("container %q: twice %v, problems %v", c.Name, named[c.Name], problems)
		}
		named[c.Name] = true
	}
	if len(named) != len(pins) || !named["environment-short"] {
		t.Errorf("%d containers are named, want %d: %v", len(named), len(pins), named)
	}
}

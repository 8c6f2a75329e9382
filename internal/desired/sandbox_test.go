// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestSandboxSharesNothing requires that the policy's programs have a container of their own: it shares no volume with
// the functions and the worker but its socket and the runner's program, and has no variable that comes from elsewhere.
func TestSandboxSharesNothing(t *testing.T) {
	settings := Settings{Image: "operator:dev", PythonImage: "python:dev"}
	env := pythonEnvironment("own", &v1alpha1.Execution{Container: v1alpha1.Container{Env: []corev1.EnvVar{
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
		{Name: "THRESHOLD", Value: "1"},
	}}}, environment.Python{Source: inline(rewardCode)}, environment.Python{Source: inline(rewardCode + " ")})
	env.Spec.Reward.Weighted[1].Python = nil
	env.Spec.Reward.Weighted[1].Tests = &environment.Tests{Language: environment.TestPython}
	definition := Definition(env.Spec)
	if err := definition.Validate(); err != nil {
		t.Error(err)
	}
	if got := definition.Execution; got.SandboxBytes != 960<<20 || got.ProcessBytes != 480<<20 {
		t.Errorf("got %d bytes for programs and %d for each process of functions, want 960 and 480 MiB", got.SandboxBytes,
			got.ProcessBytes)
	}
	pins := Pins{"own": {Definition: definition}, "same": {Definition: definition}}
	job := RolloutJob(testRun(), 1, "credentials", settings)
	if err := RunServers(job, pins.Servers(), "", settings); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.Template.Spec
	var names []string
	for _, c := range spec.InitContainers {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"install-runner", "environment-own", "environment--sandbox-own"}, names); diff != "" {
		t.Fatalf("containers (-want +got):\n%s", diff)
	}
	functions, sandbox, worker := spec.InitContainers[1], spec.InitContainers[2], spec.Containers[0]
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "THRESHOLD", Value: "1"}}, sandbox.Env); diff != "" {
		t.Errorf("variables of the sandbox (-want +got):\n%s", diff)
	}
	if len(functions.Env) != 2 {
		t.Errorf("the functions have the variables %v, want both", functions.Env)
	}
	shared := map[string][]string{}
	for path, volume := range mountsOf(sandbox) {
		for name, other := range map[string]corev1.Container{"functions": functions, "worker": worker} {
			for _, theirs := range mountsOf(other) {
				if theirs == volume {
					shared[path] = append(shared[path], name)
				}
			}
		}
	}
	want := map[string][]string{socketDir: {"worker"}, runnerDir: {"functions"}} // the runner's program is read-only
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Errorf("shared volumes (-want +got):\n%s", diff)
	}
	for _, mount := range sandbox.VolumeMounts {
		if mount.MountPath == runnerDir && !mount.ReadOnly {
			t.Errorf("a policy can write the runner's program: got %+v, want it to be read-only", mount)
		}
	}
	at := contract.SocketOf(definition.SandboxID())
	if _, ok := mountsOf(worker)[strings.TrimSuffix(at, "/"+contract.RunnerSocket)]; !ok {
		t.Errorf("the worker looks for the socket at %s, and has %v", at, mountsOf(worker))
	}
	for _, volume := range spec.Volumes {
		if len(volume.Name) > 63 {
			t.Errorf("the volume %s has a name that is too long", volume.Name)
		}
	}
}

// TestSocketsAreSharedInGVisor requires the annotations that make gVisor show a socket to all containers of a pod. A
// pod of the node's own runtime has no such annotations.
func TestSocketsAreSharedInGVisor(t *testing.T) {
	env := pythonEnvironment("own", &v1alpha1.Execution{}, environment.Python{Source: inline(rewardCode)})
	env.Spec.Reward.Python, env.Spec.Reward.Tests = nil, &environment.Tests{Language: environment.TestPython}
	settings, list := Settings{PythonImage: "python:dev"}, Pins{"own": {Definition: Definition(env.Spec)}}.Servers()
	annotations := func(class string) map[string]string {
		run := testRun()
		run.Spec.PodOverrides = nil
		job := RolloutJob(run, 1, "credentials", settings)
		job.Spec.Template.Annotations = map[string]string{"team": "a"}
		if class != "" {
			job.Spec.Template.Spec.RuntimeClassName = &class
		}
		if err := RunServers(job, list, "", settings); err != nil {
			t.Fatal(err)
		}
		return job.Spec.Template.Annotations
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, annotations("")); diff != "" {
		t.Errorf("annotations without a runtime class (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"team": "a",
		"dev.gvisor.spec.mount.tinker-operator-program-0-sandbox.share": "pod",
		"dev.gvisor.spec.mount.tinker-operator-program-0-sandbox.type":  "bind",
	}
	if diff := cmp.Diff(want, annotations("gvisor")); diff != "" {
		t.Errorf("annotations in gVisor (-want +got):\n%s", diff)
	}
}

// TestQuantitiesAreBytes requires that an amount of memory has one digest, however it is written.
func TestQuantitiesAreBytes(t *testing.T) {
	for quantity, want := range map[string]string{"": "268435456", "512Mi": "536870912", "0.5Gi": "536870912", "x": "x"} {
		env := pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode)})
		env.Spec.Reward.Python = nil
		env.Spec.Reward.Tests = &environment.Tests{Language: environment.TestPython, Memory: quantity}
		if got := Definition(env.Spec).Reward.Tests.Memory; got != want {
			t.Errorf("%q: got %q, want %q", quantity, got, want)
		}
	}
}

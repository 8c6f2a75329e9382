// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

const rewardCode = "def reward(row, reply):\n    return 1\n"

// pythonEnvironment returns an environment whose reward consists of functions.
func pythonEnvironment(name string, execution *v1alpha1.Execution,
	functions ...environment.Python) *v1alpha1.RewardEnvironment {
	env := &v1alpha1.RewardEnvironment{}
	env.Name, env.Namespace, env.UID = name, "ns", "uid-of-env"
	env.Spec.Dataset = &environment.Dataset{Arithmetic: &environment.ArithmeticData{}}
	env.Spec.Reward = &environment.Reward{}
	if len(functions) == 1 {
		env.Spec.Reward.Python = &functions[0]
	} else {
		for i, function := range functions {
			part := environment.WeightedReward{Name: string(rune('a' + i)), Weight: 1}
			part.Python = &function
			env.Spec.Reward.Weighted = append(env.Spec.Reward.Weighted, part)
		}
	}
	env.Spec.Execution = execution
	admit.Default(env)
	return env
}

// TestDefinitionOfFunctions checks the defaults, and that all processes share the container's memory.
func TestDefinitionOfFunctions(t *testing.T) {
	env := pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode)})
	want := &environment.Python{Source: inline(rewardCode), Processes: 2, Concurrency: 64,
		TimeoutSeconds: 60}
	if diff := cmp.Diff(want, Definition(env.Spec).Reward.Python); diff != "" {
		t.Errorf("a function (-want +got):\n%s", diff)
	}
	if got := Definition(env.Spec).Execution.ProcessBytes; got != 480<<20 {
		t.Errorf("a process of two has %d bytes, want 480 MiB", got)
	}
	half := 0.5
	execution := &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Image: "own:1"},
		Container: v1alpha1.Container{
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("464Mi")}}}}
	env = pythonEnvironment("own", execution,
		environment.Python{Source: inline(rewardCode), Processes: 3, Concurrency: 1,
			TimeoutSeconds: 5, Function: "score", OnError: &half},
		environment.Python{Source: inline(rewardCode), Processes: 1})
	definition := Definition(env.Spec)
	if err := definition.Validate(); err != nil {
		t.Error(err)
	}
	if got := definition.Execution.ProcessBytes; got != 100<<20 {
		t.Errorf("a process of four has %d of 464 MiB, want 100 MiB", got)
	}
	want = &environment.Python{Source: inline(rewardCode), Function: "score", Processes: 3,
		Concurrency: 1, TimeoutSeconds: 5, OnError: &half}
	if diff := cmp.Diff(want, definition.Reward.Weighted[0].Python); diff != "" {
		t.Errorf("a function of a sum (-want +got):\n%s", diff)
	}
}

// TestDefinitionOfEpisodes checks the defaults of code that plays episodes, and that it has a container of its own.
func TestDefinitionOfEpisodes(t *testing.T) {
	env := pythonEnvironment("own", &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Image: "own:1"}},
		environment.Python{Source: inline(rewardCode)})
	env.Spec.Reward = nil
	env.Spec.Interaction = &environment.Interaction{Python: &environment.PythonEpisodes{
		Source: environment.Source{Code: "x"}, Roles: []string{"b", "a"}}}
	admit.Default(env)
	definition := Definition(env.Spec)
	if err := definition.Validate(); err != nil {
		t.Error(err)
	}
	want := &environment.PythonEpisodes{Roles: []string{"b", "a"}, Source: environment.Source{Code: "x"}, Processes: 2,
		Concurrency: 64}
	if diff := cmp.Diff(want, definition.Episodes()); diff != "" {
		t.Errorf("episodes (-want +got):\n%s", diff)
	}
	if got, want := definition.Execution.ProcessBytes, int64(480<<20); got != want {
		t.Errorf("a process has %d bytes, want %d", got, want)
	}
	programs := Pins{"own": {Definition: definition}}.programs()
	if got := programs["own"]; got.ID != definition.ProgramID() || got.Image != "own:1" {
		t.Errorf("the container is %+v, want one of own:1 with the ID %s", got, definition.ProgramID())
	}
}

// TestCodeIsPartOfTheDigest requires that other code or another image has another digest.
func TestCodeIsPartOfTheDigest(t *testing.T) {
	digests := map[string]bool{}
	for _, env := range []*v1alpha1.RewardEnvironment{
		pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode)}),
		pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode + " ")}),
		pythonEnvironment("own", &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Image: "own:1"}},
			environment.Python{Source: inline(rewardCode)}),
	} {
		digest, err := contract.DefinitionDigest(Definition(env.Spec))
		if err != nil {
			t.Fatal(err)
		}
		digests[digest] = true
	}
	if len(digests) != 3 {
		t.Errorf("got %d digests, want 3", len(digests))
	}
}

// mountsOf returns the volumes of a container by the paths at which they are mounted.
func mountsOf(c corev1.Container) map[string]string {
	mounts := map[string]string{}
	for _, mount := range c.VolumeMounts {
		mounts[mount.MountPath] = mount.Name
	}
	return mounts
}

func TestFunctionsRunBesideWorkers(t *testing.T) {
	settings := Settings{Image: "operator:dev", PythonImage: "python:dev"}
	secret := corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	env := pythonEnvironment("own", &v1alpha1.Execution{Container: v1alpha1.Container{Env: []corev1.EnvVar{secret}}},
		environment.Python{Source: inline(rewardCode)})
	definition := Definition(env.Spec)
	pins := Pins{"own": {Definition: definition}, "same": {Definition: definition}, "sums": {Definition: Definition(
		orsEnvironment(serverOnly(environment.ServerImage{Image: "sums:dev"})).Spec)}}
	job := RolloutJob(testRun(), 1, "credentials", settings)
	if err := RunServers(job, pins.Servers(), "prefix", settings); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.Template.Spec
	var got []string
	for _, c := range spec.InitContainers {
		got = append(got, c.Name+" "+c.Image)
		if diff := cmp.Diff(spec.Containers[0].SecurityContext, c.SecurityContext); diff != "" {
			t.Errorf("%s: rights (-worker +got):\n%s", c.Name, diff)
		}
	}
	if diff := cmp.Diff([]string{"install-runner operator:dev", "environment-own python:dev", "environment-sums sums:dev"},
		got); diff != "" {
		t.Fatalf("init containers (-want +got):\n%s", diff)
	}
	install, program, worker := spec.InitContainers[0], spec.InitContainers[1], spec.Containers[0]
	if install.RestartPolicy != nil || *program.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("got %v and %v, want a container that ends, and a sidecar", install.RestartPolicy, program.RestartPolicy)
	}
	if diff := cmp.Diff(worker.Resources, install.Resources); diff != "" {
		t.Errorf("resources of the container that ends (-worker +got):\n%s", diff)
	}
	// Worker and functions share only the socket. The worker does not have the runner.
	at := contract.ProgramsDir + "/" + definition.ProgramID()
	shared := map[string]string{}
	for path, volume := range mountsOf(worker) {
		for _, theirs := range mountsOf(program) {
			if volume == theirs {
				shared[path] = volume
			}
		}
	}
	if diff := cmp.Diff(map[string]string{at: mountsOf(program)["/run/tinker-operator/program"]}, shared); diff != "" {
		t.Errorf("shared volumes (-want +got):\n%s", diff)
	}
	if len(shared) == 1 && contract.SocketOf(definition.ProgramID()) != at+"/runner.sock" {
		t.Errorf("the worker looks for the socket at %s", contract.SocketOf(definition.ProgramID()))
	}
	command := "/opt/tinker-operator/runner --socket /run/tinker-operator/program/runner.sock --scratch /tmp/runner"
	if got := strings.Join(program.Command, " "); got != command {
		t.Errorf("command: got %s, want %s", got, command)
	}
	if strings.Join(install.Command, " ") != "/runner --install "+program.Command[0] ||
		mountsOf(install)["/opt/tinker-operator"] != mountsOf(program)["/opt/tinker-operator"] {
		t.Errorf("the runner is installed by %v in %v, and run as %s", install.Command, mountsOf(install), program.Command[0])
	}
	if diff := cmp.Diff([]corev1.EnvVar{secret}, program.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if *spec.AutomountServiceAccountToken {
		t.Error("the pod has a service account's token")
	}
	names := map[string]bool{}
	for _, volume := range spec.Volumes {
		if names[volume.Name] {
			t.Errorf("there are two volumes %s", volume.Name)
		}
		names[volume.Name] = true
	}
	probe := ProbeJob(env, "0123456789", 1, settings).Spec.Template.Spec
	if !slices.ContainsFunc(probe.InitContainers, func(c corev1.Container) bool { return c.Name == "environment-own" }) ||
		mountsOf(probe.Containers[0])[at] == "" {
		t.Errorf("the probe's pod lacks the functions: %+v", probe.InitContainers)
	}
}

// TestServersOfEarlierVersions decodes the annotation that a manager without functions wrote.
func TestServersOfEarlierVersions(t *testing.T) {
	got, err := decodeServers(`{"sums":{"image":"sums:dev","port":8080}}`)
	if diff := cmp.Diff(map[string]sidecar{"sums": {Server: contract.Server{
		ServerImage: environment.ServerImage{Image: "sums:dev", Port: 8080}}}},
		got); err != nil || diff != "" {
		t.Errorf("decodeServers: %v (-want +got):\n%s", err, diff)
	}
}

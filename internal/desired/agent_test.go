// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// TestAgentsInPods requires that an agent has pods of its own if its environment says so, beside the pods of the
// function that scores it. The agent's pods have no variables that come from Secrets. Workers have neither container.
func TestAgentsInPods(t *testing.T) {
	run := testRun()
	for _, pool := range []string{"", "python"} {
		execution := &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Placement: environment.PlacementPods},
			Pods: &v1alpha1.ExecutionPods{Replicas: 2}, Container: v1alpha1.Container{Env: []corev1.EnvVar{
				{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
				{Name: "THRESHOLD", Value: "1"}}}}
		if pool != "" {
			execution.Env, execution.Pods.WarmPoolRef = nil, &v1alpha1.WarmPoolRef{Name: pool}
		}
		env := pythonEnvironment("own", execution, environment.Python{Source: inline(rewardCode)})
		env.Spec.Interaction = &environment.Interaction{Agent: &environment.Agent{Command: []string{"x"}}}
		admit.Default(env)
		definition := Definition(env.Spec)
		list, settings := Pins{"own": {Definition: definition}}.Servers(), Settings{Image: "operator:dev"}
		made, err := ProgramPods(run, list, "suffix", settings)
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := PoolPrograms(list)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, d := range made {
			ids[d.Labels[v1alpha1.LabelProgram]] = true
			container := d.Spec.Template.Spec.Containers[0]
			isAgent := d.Labels[v1alpha1.LabelProgram] == definition.AgentID()
			hasKey := slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "KEY" })
			if hasKey == isAgent || *d.Spec.Replicas != 2 {
				t.Errorf("%s (agent: %v) has %d replicas and the variables %v", d.Name, isAgent, *d.Spec.Replicas, container.Env)
			}
		}
		for _, program := range claimed {
			ids[program.ID] = true
		}
		want := map[string]bool{definition.AgentID(): true, definition.ProgramID(): true}
		if diff := cmp.Diff(want, ids); diff != "" || (len(claimed) == 2) != (pool != "") {
			t.Errorf("pool %q: programs in pods (-want +got):\n%s", pool, diff)
		}
		job := RolloutJob(run, 1, "credentials", settings)
		if err := RunServers(job, list, "run", settings); err != nil {
			t.Fatal(err)
		}
		if containers := job.Spec.Template.Spec.InitContainers; len(containers) > 0 {
			t.Errorf("workers have the containers %v", containers)
		}
	}
}

// TestAgentSharesNothing requires that an agent has a container of its own, beside the container of the function that
// scores it. The two share the runner's program, which is read-only. They share no variable that comes from a Secret,
// unless the agent's network is open.
func TestAgentSharesNothing(t *testing.T) {
	for network, variables := range map[environment.AgentNetwork]int{"": 1, environment.NetworkOpen: 2} {
		env := pythonEnvironment("own", &v1alpha1.Execution{Container: v1alpha1.Container{Env: []corev1.EnvVar{
			{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
			{Name: "THRESHOLD", Value: "1"},
		}}}, environment.Python{Source: environment.Source{Code: rewardCode}})
		env.Spec.Interaction = &environment.Interaction{Agent: &environment.Agent{Command: []string{"x"}, Network: network}}
		admit.Default(env)
		definition := Definition(env.Spec)
		if err := definition.Validate(); err != nil {
			t.Error(err)
		}
		if got := definition.Execution; got.AgentBytes != 120<<20 || got.ProcessBytes != 480<<20 {
			t.Errorf("got %d bytes for each process of the agent and %d for each of the function, want 120 and 480 MiB",
				got.AgentBytes, got.ProcessBytes)
		}
		job := RolloutJob(testRun(), 1, "credentials", Settings{Image: "operator:dev", PythonImage: "python:dev"})
		list := Pins{"own": {Definition: definition}, "same": {Definition: definition}}.Servers()
		if err := RunServers(job, list, "", Settings{}); err != nil {
			t.Fatal(err)
		}
		spec := job.Spec.Template.Spec
		containers := map[string]corev1.Container{"worker": spec.Containers[0]}
		var names []string
		for _, c := range spec.InitContainers {
			names = append(names, c.Name)
			containers[c.Name] = c
		}
		if diff := cmp.Diff([]string{"install-runner", "environment-own", "environment--agent-own"}, names); diff != "" {
			t.Fatalf("containers (-want +got):\n%s", diff)
		}
		agent := containers["environment--agent-own"]
		if len(agent.Env) != variables || len(containers["environment-own"].Env) != 2 {
			t.Errorf("network %q: the agent has the variables %v, want %d; the function has %v, want both", network, agent.Env,
				variables, containers["environment-own"].Env)
		}
		shared := map[string][]string{}
		for path, volume := range mountsOf(agent) {
			for _, name := range []string{"environment-own", "worker"} {
				for _, theirs := range mountsOf(containers[name]) {
					if theirs == volume {
						shared[path] = append(shared[path], name)
					}
				}
			}
		}
		want := map[string][]string{socketDir: {"worker"}, runnerDir: {"environment-own"}}
		if diff := cmp.Diff(want, shared); diff != "" {
			t.Errorf("shared volumes (-want +got):\n%s", diff)
		}
		if at := contract.ProgramsDir + "/" + definition.AgentID(); mountsOf(containers["worker"])[at] == "" {
			t.Errorf("the worker looks for the agent's socket at %s, and has %v", at, mountsOf(containers["worker"]))
		}
	}
}

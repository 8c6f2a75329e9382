// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// valuesOf returns the variables of a container that have plain values. A policy's programs do not get variables from
// Secrets, ConfigMaps or the pod.
func valuesOf(container contract.Container) json.RawMessage {
	var env []corev1.EnvVar
	if err := json.Unmarshal(container.Env, &env); err != nil {
		return nil // there are none, or RunServers reports it
	}
	env = slices.DeleteFunc(env, func(variable corev1.EnvVar) bool { return variable.ValueFrom != nil })
	if len(env) == 0 {
		return nil
	}
	return encode(env)
}

// sandboxName stands for the environment's name in the name of the container of the policy's programs. No environment
// has a name that begins with a hyphen.
func sandboxName(environment string) string { return "-sandbox-" + environment }

// agentName stands for the environment's name in the name of the container of its agent.
func agentName(environment string) string { return "-agent-" + environment }

// runPrograms adds the containers of functions, of an agent and of the policy's programs to a pod. They share no
// volume. With a prefix, programs with pods of their own are not added. A probe, which has no prefix, runs them beside
// itself, on the nodes of such pods.
func runPrograms(spec *corev1.PodSpec, i int, name, prefix string, of sidecar, settings Settings) error {
	for _, each := range []struct {
		suffix, name string
		*program
	}{{"", name, of.Program}, {"-agent", agentName(name), of.Agent}, {"-sandbox", sandboxName(name), of.Sandbox}} {
		if each.program == nil {
			continue
		}
		if each.inPods() {
			if prefix != "" {
				leadTo(spec, prefix)
				trustPool(spec, each.pool())
				continue
			}
			pods, err := each.pods()
			if err != nil {
				return err
			}
			schedule(spec, pods)
		}
		if err := runProgram(spec, strconv.Itoa(i)+each.suffix, each.name, *each.program, settings); err != nil {
			return err
		}
	}
	return nil
}

// bytesOf returns a quantity as a number of bytes, which is the form that programs read. A text that is no quantity
// stays as it is; the probe reports it.
func bytesOf(quantity string) string {
	parsed, err := resource.ParseQuantity(quantity)
	if err != nil {
		return quantity
	}
	return strconv.FormatInt(parsed.Value(), 10)
}

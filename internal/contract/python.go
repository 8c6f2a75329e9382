// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"iter"
	"path"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// Execution is the container in which the functions of an environment run, beside each worker. ProcessBytes,
// AgentBytes and SandboxBytes are for workers, and the manager reads the other fields.
type Execution struct {
	environment.FunctionImage
	Container
	// Pods has the settings of the pods if the placement is Pods, in the JSON of the API. Workers read only podSettings
	// of them.
	Pods json.RawMessage `json:"pods,omitempty"`
	// Packages are the wheels of requirements that the probe has pinned, in the form of Package.String.
	Packages []string `json:"packages,omitempty"`
	// ProcessBytes bounds the memory of each process of a function together with its children; 0 for the runner's default.
	ProcessBytes int64 `json:"processBytes,omitempty"`
	// AgentBytes bounds the memory of each process of an agent together with its children, in a container of its own.
	AgentBytes int64 `json:"agentBytes,omitempty"`
	// SandboxBytes bounds the memory of all programs of a policy together, in a container of their own.
	SandboxBytes int64 `json:"sandboxBytes,omitempty"`
}

// InPods reports whether the programs of a definition run in pods of their own.
func (d Definition) InPods() bool {
	return d.Execution != nil && d.Execution.Placement == environment.PlacementPods
}

// WarmPool returns the name of the SandboxWarmPool from which the pods of a definition's programs come. It is empty
// if the manager makes the pods, or if the programs run beside workers.
func (d Definition) WarmPool() string {
	return d.pods().WarmPoolRef.Name
}

// PodsAreClosed reports whether a NetworkPolicy forbids the pods of a definition's programs to open connections. The
// template of a warm pool may permit some.
func (d Definition) PodsAreClosed() bool {
	pods := d.pods()
	return d.InPods() && pods.Network != environment.PodNetworkOpen && pods.WarmPoolRef.Name == ""
}

// podSettings are the settings of pods that workers read.
type podSettings struct {
	Network     environment.PodNetwork `json:"network"`
	WarmPoolRef struct{ Name string }  `json:"warmPoolRef"`
}

func (d Definition) pods() podSettings {
	var pods podSettings
	if !d.InPods() || len(d.Execution.Pods) == 0 {
		return pods
	}
	if err := json.Unmarshal(d.Execution.Pods, &pods); err != nil {
		return podSettings{Network: environment.PodNetworkOpen} // the manager reports it
	}
	return pods
}

// Sources lists the sources of a definition's code, by the paths of its functions.
func (d Definition) Sources() iter.Seq2[string, *environment.Source] {
	return environment.Sources(d.Reward, d.Interaction)
}

// CheckRead returns an error if a definition has the name of a ConfigMap in place of the code of a function.
func (d Definition) CheckRead() error {
	for path, source := range d.Sources() {
		if key := source.ConfigMapKeyRef; key != nil {
			return fmt.Errorf("ConfigMap %q of %s was not read", key.Name, path)
		}
	}
	return nil
}

// HasModule reports whether a function of a definition is in its image.
func (d Definition) HasModule() bool {
	for _, source := range d.Sources() {
		if source.Module != "" {
			return true
		}
	}
	return false
}

// Episodes returns the code that plays the episodes of a definition; nil for every other interaction.
func (d Definition) Episodes() *environment.PythonEpisodes {
	if d.Interaction == nil {
		return nil
	}
	return d.Interaction.Python
}

// Agent returns the agent that plays the episodes of a definition; nil for every other interaction.
func (d Definition) Agent() *environment.Agent {
	if d.Interaction == nil {
		return nil
	}
	return d.Interaction.Agent
}

// SaysRewards reports whether the interaction also returns the rewards of episodes, so that the definition has no
// reward.
func (d Definition) SaysRewards() bool {
	agent := d.Agent()
	return d.Episodes() != nil || agent != nil && agent.Reward.From == environment.RewardFromAgent
}

// Processes returns how many processes run the functions of a definition beside a worker.
func (d Definition) Processes() int64 {
	var processes int64
	for _, function := range d.Reward.Functions() {
		processes += int64(function.Processes)
	}
	if episodes := d.Episodes(); episodes != nil {
		processes += int64(episodes.Processes)
	}
	return processes
}

// AgentProcesses returns how many processes run the agent of a definition beside a worker.
func (d Definition) AgentProcesses() int64 {
	if agent := d.Agent(); agent != nil {
		return int64(agent.Processes)
	}
	return 0
}

// ProgramsDir is the folder in which pods that call programs have the sockets of their runners, each in a folder of its
// own.
const ProgramsDir = "/run/tinker-operator/programs"

// RunnerSocket is the name of a runner's socket in its folder.
const RunnerSocket = "runner.sock"

// ProgramID names the runner of a definition's functions in a pod; it is empty for a definition without functions.
// Definitions with equal functions and equal Execution have equal names, whatever their other fields are.
func (d Definition) ProgramID() string {
	if d.Processes() == 0 {
		return ""
	}
	of := Definition{Reward: d.Reward, Execution: d.Execution}
	if d.Episodes() != nil {
		of.Interaction = &environment.Interaction{Python: d.Episodes()}
	}
	return nameOf("programs", of)
}

// AgentID names the runner of a definition's agent in a pod; it is empty for a definition without an agent. An agent
// may have tools that run programs of the policy, so it shares its container with no function. Definitions with equal
// agents and equal Execution have equal names.
func (d Definition) AgentID() string {
	if d.AgentProcesses() == 0 {
		return ""
	}
	return nameOf("agent", Definition{Execution: d.Execution, Interaction: &environment.Interaction{Agent: d.Agent()}})
}

// nameOf returns a name that is derived from the settings of a runner, so that equal settings share one runner.
func nameOf(kind string, of any) string {
	name, err := digest(kind, of)
	if err != nil {
		return "" // no JSON: DefinitionDigest reports it
	}
	return name[:16]
}

// SocketOf returns the socket of a runner by its name.
func SocketOf(id string) string { return path.Join(ProgramsDir, id, RunnerSocket) }

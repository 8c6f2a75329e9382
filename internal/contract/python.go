// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"path"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// Execution is where the functions of an environment run, beside each worker. The manager reads all but ProcessBytes.
type Execution struct {
	environment.FunctionImage
	Container
	// ProcessBytes bounds each process of a function with what it starts; 0 for the runner's default.
	ProcessBytes int64 `json:"processBytes,omitempty"`
}

// Episodes returns the code that plays the episodes of a definition; nil for every other interaction.
func (d Definition) Episodes() *environment.PythonEpisodes {
	if d.Interaction == nil {
		return nil
	}
	return d.Interaction.Python
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

// ProgramsDir is where the pods that call programs have the sockets of their runners, each in a folder of its own.
const ProgramsDir = "/run/tinker-operator/programs"

// RunnerSocket is the name of a runner's socket in its folder.
const RunnerSocket = "runner.sock"

// ProgramID names the runner of a definition's programs in a pod; it is empty for a definition without programs. Equal
// programs have equal names, whatever else their definitions say.
func (d Definition) ProgramID() string {
	if d.Processes() == 0 {
		return ""
	}
	of := Definition{Reward: d.Reward, Execution: d.Execution}
	if episodes := d.Episodes(); episodes != nil {
		of.Interaction = &environment.Interaction{Python: episodes}
	}
	programs, err := digest("programs", of)
	if err != nil {
		return "" // no JSON: DefinitionDigest reports it
	}
	return programs[:16]
}

// SocketOf returns the socket of a runner by its name.
func SocketOf(id string) string { return path.Join(ProgramsDir, id, RunnerSocket) }

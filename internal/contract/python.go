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

// ProgramsDir is where the pods that call programs have the sockets of their runners, each in a folder of its own.
const ProgramsDir = "/run/tinker-operator/programs"

// RunnerSocket is the name of a runner's socket in its folder.
const RunnerSocket = "runner.sock"

// ProgramID names the runner of a definition's programs in a pod; it is empty for a definition without programs. Equal
// programs have equal names, whatever else their definitions say.
func (d Definition) ProgramID() string {
	if len(d.Reward.Functions()) == 0 {
		return ""
	}
	programs, err := digest("programs", Definition{Reward: d.Reward, Execution: d.Execution})
	if err != nil {
		return "" // no JSON: DefinitionDigest reports it
	}
	return programs[:16]
}

// SocketOf returns the socket of a runner by its name.
func SocketOf(id string) string { return path.Join(ProgramsDir, id, RunnerSocket) }

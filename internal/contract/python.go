// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"path"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// Python is a function of a user.
type Python struct {
	// Code is the text of its module.
	Code string `json:"code"`
	// Function is its name; empty for reward or rewards, whichever there is.
	Function string `json:"function,omitempty"`
	// Processes run calls at once, and each of them runs Concurrency calls at once if the function is async.
	Processes   int `json:"processes"`
	Concurrency int `json:"concurrency"`
	// TimeoutSeconds bounds a call.
	TimeoutSeconds int `json:"timeoutSeconds"`
	// MemoryBytes bounds each process with what it starts.
	MemoryBytes int64 `json:"memoryBytes"`
	// OnError is the reward where the function raises or returns no reward; nil has that be a fault.
	OnError *float64 `json:"onError,omitempty"`
}

// Execution is where the programs of an environment run, beside each worker. The manager reads all of it.
type Execution struct {
	// Image is empty for the operator's.
	Image string `json:"image,omitempty"`
	// Env and Resources are those of a Kubernetes container.
	Env       json.RawMessage `json:"env,omitempty"`
	Resources json.RawMessage `json:"resources,omitempty"`
}

// ProgramsDir is where the pods that call programs have the sockets of their runners, each in a folder of its own.
const ProgramsDir = "/run/tinker-operator/programs"

// RunnerSocket is the name of a runner's socket in its folder.
const RunnerSocket = "runner.sock"

// longestCode bounds what code adds to run files.
const longestCode = 64 << 10

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

// Functions lists the functions that a reward calls.
func (r *RewardRule) Functions() []*Python {
	if r == nil {
		return nil
	}
	var all []*Python
	if r.Python != nil {
		all = append(all, r.Python)
	}
	for _, part := range r.Weighted {
		if part.Rule.Python != nil {
			all = append(all, part.Rule.Python)
		}
	}
	return all
}

func (f *Python) validate(p *problems, path string) {
	p.require(f.Code != "", path+".code", "is needed")
	p.require(len(f.Code) <= longestCode, path+".code", "must have at most %d bytes", longestCode)
	p.require(f.Processes >= 1, path+".processes", "must be at least 1")
	p.require(f.Concurrency >= 1, path+".concurrency", "must be at least 1")
	p.require(f.TimeoutSeconds >= 1, path+".timeoutSeconds", "must be at least 1")
	p.require(f.MemoryBytes >= 0, path+".memoryBytes", "must be at least 0")
	p.require(f.OnError == nil || finite.Is(*f.OnError), path+".onError", "must be a number")
}

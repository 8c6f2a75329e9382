// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
)

// methodAgent is the method of an agent in Python.
const methodAgent = "agent"

// The limits of an agent that differ from the limits of a function: the bytes that it prints, its address space, since
// some languages reserve much more than they use, and the processes of its tree.
const (
	agentOutput    = 256 << 20
	agentAddresses = 1 << 40
	agentProcesses = 256
)

// AgentOptions are the program and the limits of an agent.
type AgentOptions struct {
	// Command is the program that is run for each episode. If it is empty, the agent is a function in Python.
	Command []string
	// Variables are the names of the environment variables that differ between commands.
	Variables []string
	// Code, Module and Function are as in Options.
	Code, Module, Function string
	// Processes is the number of processes that play episodes at the same time. Each process of Python plays Concurrency
	// episodes at the same time.
	Processes, Concurrency int
	// MemoryBytes bounds each process with its descendants. Defaults to the runner's default.
	MemoryBytes int64
	// Network confines the agent's network; nil gives it the network of its container.
	Network *protocol.Network
}

// Agent is a program that plays episodes. It is safe for concurrent use.
type Agent struct {
	function *function
	method   string
}

// NewAgent returns an agent. Nothing is started yet.
func NewAgent(host *Host, o AgentOptions) (*Agent, error) {
	spec := protocol.Spec{
		Env: map[string]string{}, InheritEnv: host.InheritEnv, Processes: o.Processes, Concurrency: o.Concurrency,
		Network: o.Network,
		Limits: protocol.Limits{StartSeconds: startSeconds, CallSeconds: longestEpisode.Seconds(),
			MemoryBytes: o.MemoryBytes, OutputBytes: agentOutput, AddressSpaceBytes: agentAddresses,
			Processes: agentProcesses, OpenFiles: 4096},
	}
	for name, value := range host.Env {
		spec.Env[name] = value
	}
	if len(o.Command) > 0 {
		config, err := json.Marshal(spawn.Config{Command: o.Command, Variables: o.Variables,
			ImportSeconds: startSeconds - 30})
		if err != nil {
			return nil, fmt.Errorf("encoding a command: %w", err)
		}
		spec.Kind, spec.Command, spec.Config = "command", spawn.Command(), config
		if spec.Limits.MemoryBytes > 0 {
			spec.Limits.MemoryBytes += host.StarterBytes
		}
		if !spec.InheritEnv && spec.Env["PATH"] == "" {
			spec.Env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
		}
		return newAgent(host, spec, "a program", spawn.Method)
	}
	// The key is a part of the base URL, but clients require these variables all the same.
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} {
		spec.Env[name] = cmp.Or(spec.Env[name], "in-the-base-url")
	}
	spec, err := python.Spec(cmp.Or(host.Interpreter, "python3"), python.Function{Code: o.Code, Module: o.Module,
		Name: o.Function, Entry: methodAgent}, spec)
	if err != nil {
		return nil, err
	}
	return newAgent(host, spec, "async def agent(task, base_url)", methodAgent)
}

func newAgent(host *Host, spec protocol.Spec, wanted, method string) (*Agent, error) {
	f, err := newProgram(host, spec, wanted, method)
	if err != nil {
		return nil, err
	}
	f.hasGateway = host.Pods != nil
	return &Agent{function: f, method: method}, nil
}

// Check returns nil once the agent can be started. The error is a *CodeError if its code is wrong.
func (a *Agent) Check(ctx context.Context) error { return a.function.Check(ctx) }

// Ending is the meaning of the end of an agent's process.
type Ending int

// The endings.
const (
	// Ended is an agent that has ended by itself.
	Ended Ending = iota
	// Lost is an agent whose process has ended, perhaps because of another episode, or that was not started.
	Lost
	// Failed is an agent that has failed, or that was ended at one of its limits.
	Failed
)

// Episode is an episode that an agent plays.
type Episode struct {
	Params json.RawMessage
	Seed   uint64
	// Alone gives the agent a process that plays no other episode.
	Alone bool
	// Gateway stands for the address of the gateway in Params, if the agent runs in pods of its own. Serve serves the
	// connections that the agent makes to that address.
	Gateway string
	Serve   func(net.Conn)
}

// InPods reports whether the agent runs in pods of its own, and needs the Gateway of an episode.
func (a *Agent) InPods() bool { return a.function.host.Pods != nil }

// Play plays one episode, and repeats nothing: if the agent's process ends, the episode begins anew, with a new
// policy.
func (a *Agent) Play(ctx context.Context, e Episode) (json.RawMessage, Ending, error) {
	s, err := a.function.ready(ctx, e.Seed)
	if err != nil {
		return nil, Lost, err
	}
	result, err := s.Try(ctx, client.Call{Method: a.method, Params: e.Params, Seed: e.Seed, Alone: e.Alone,
		Gateway: e.Gateway, Serve: e.Serve})
	if client.IsUnknown(err) {
		a.function.forget(s)
	}
	switch client.After(err, e.Alone) {
	case client.Done:
		return result.Value, Ended, nil
	case client.Permanent:
		return nil, Failed, describe(err)
	default:
		return nil, Lost, describe(err)
	}
}

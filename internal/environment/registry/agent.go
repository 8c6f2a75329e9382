// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/agent"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

var errNoGateway = errors.New("this program can serve no agents")

// defaultGrace is the number of seconds that an agent may go on after a limit if the definition does not set it.
const defaultGrace = 10

// newAgent builds an environment whose episodes are played by a program that others wrote.
func (b Builder) newAgent(ctx context.Context, f *functions, definition contract.Definition,
	agentOf settings.Agent) (environment.Environment, error) {
	if b.Gateway == nil || b.Agents == nil {
		return nil, errNoGateway
	}
	var grader verify.Grader
	var err error
	if definition.Reward != nil {
		if grader, err = b.newGrader(*definition.Reward, "spec.reward", f); err != nil {
			return nil, err
		}
	}
	rows, err := b.newDataset(ctx, *definition.Dataset)
	if err != nil {
		return nil, err
	}
	if b.CheckRows && grader != nil {
		if err := verify.CheckRows(ctx, rows, grader); err != nil {
			return nil, err
		}
	}
	program := pythonreward.AgentOptions{Command: agentOf.Command, Variables: agent.Variables,
		Processes: int(agentOf.Processes), Concurrency: int(agentOf.Concurrency)}
	if definition.Execution != nil {
		program.MemoryBytes = definition.Execution.AgentBytes
	}
	if agentOf.Python != nil {
		program.Code, program.Module, program.Function = agentOf.Python.Code, agentOf.Python.Module, agentOf.Python.Function
	}
	host := b.Agents(definition)
	if program.Network, err = b.networkOf(definition, agentOf, host.Pods != nil); err != nil {
		return nil, err
	}
	// A worker waits until a problem is over, but a probe reports it at once.
	host.Wait, host.Logger = !b.CheckRows, b.Logger
	played, err := pythonreward.NewAgent(host, program)
	if err != nil {
		return nil, err
	}
	options := optionsOfAgent(agentOf)
	options.Frozen = b.frozenOf(agentOf)
	if len(f.graders) > 0 {
		options.Check = environment.CheckerOf(pythonreward.Serve(nil, rows, f.graders, false)).Check
	}
	env := agent.New(played, rows, grader, b.Gateway, options)
	if b.CheckRows {
		return env, checkFunctions(ctx, env)
	}
	return env, nil
}

// networkOf returns the network of an agent's processes: only the gateway, or nil if their network is open. In pods
// of their own, the processes reach the gateway of each call, so that the programs of all workers are equal.
func (b Builder) networkOf(definition contract.Definition, agentOf settings.Agent,
	inPods bool) (*protocol.Network, error) {
	if agentOf.Network == settings.NetworkOpen {
		return nil, nil
	}
	server, err := b.Gateway()
	if err != nil {
		return nil, &environment.Fault{Unavailable: true, Err: fmt.Errorf("serving an agent: %w", err)}
	}
	network := &protocol.Network{Connect: []string{server.HostPort()}, Minimum: isolation.Landlock}
	if inPods {
		network.Connect, network.Gateway = nil, true
	}
	network.Closed = definition.PodsAreClosed() // This goes by the pods of runs, also in a probe.
	if execution := definition.Execution; execution != nil {
		network.Minimum = isolation.Level(execution.Isolation.Level())
	}
	return network, nil
}

// frozenOf returns the models besides the policy, by name. In a probe each model is nil: the stand-in for the policy
// answers for the models, too.
func (b Builder) frozenOf(of settings.Agent) map[string]environment.FrozenModel {
	frozen := map[string]environment.FrozenModel{}
	for _, model := range of.Frozen {
		frozen[model.Name] = nil
		if b.Frozen != nil {
			frozen[model.Name] = b.Frozen(model)
		}
	}
	return frozen
}

func optionsOfAgent(of settings.Agent) agent.Options {
	options := agent.Options{
		Command: of.Python == nil, File: of.Reward.File, Roles: slices.Sorted(slices.Values(of.Roles)), Fields: of.Fields,
		OnlyLast: of.Branches == settings.LastBranch, Grace: defaultGrace * time.Second,
		Source: map[settings.RewardSource]agent.Source{
			settings.RewardOutput: agent.Output, settings.RewardFile: agent.File, settings.RewardFromAgent: agent.Agent,
		}[of.Reward.From],
	}
	if of.GraceSeconds != nil {
		options.Grace = time.Duration(*of.GraceSeconds) * time.Second
	}
	if of.Unsupported == settings.RefuseUnsupported {
		options.Unsupported = dialect.Refuse
	}
	return options
}

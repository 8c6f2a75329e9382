// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry knows every kind of environment and builds the one that a definition describes. To add a kind,
// write a package below internal/environment and build it here.
package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/environment/singleturn"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/environment/workflow"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
)

// DefinitionError reports that a definition does not describe an environment. A retry does not help.
type DefinitionError struct{ Err error }

// Error implements error.
func (e *DefinitionError) Error() string { return "building environment: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DefinitionError) Unwrap() error { return e.Err }

// Builder builds environments. Its fields are the dependencies of environments; the zero value builds environments
// without dependencies.
type Builder struct {
	// Data opens all data sets for which source.IsPlain is false. It is the method Open of a source.Loader. It should
	// return soon: the methods of the data set fetch the rows. An error is a *environment.Fault, the context's, or
	// describes the defect of the definition.
	Data func(ctx context.Context, definition contract.Dataset) (dataset.Dataset, error)
	// Secret returns the value of a Secret's key. An error says what is missing.
	Secret func(ref.SecretKey) (string, error)
	// SharedServers is the value of contract.SharedServersVariable.
	SharedServers string
	// TinkerJudge returns a judge at the run's own endpoint. It is nil if there is no run, as in a probe: then rows are
	// checked, and nothing is judged.
	TinkerJudge func(settings.Judge) (rubric.Judge, error)
	// Frozen returns a model that agents ask besides the policy. It is nil if there is no run, as in a probe.
	Frozen func(settings.FrozenModel) environment.FrozenModel
	// JudgeProblem is called with the reason why a judge cannot be asked, and with nil once it can. If JudgeProblem is
	// nil, graders do not wait for a judge that is down: they return a fault.
	JudgeProblem func(problem error)
	// Programs returns the host of the functions of a definition; nil if this program cannot run functions.
	Programs func(definition contract.Definition) *pythonreward.Host
	// Agents returns the host of the agent of a definition; nil if this program cannot run agents.
	Agents func(definition contract.Definition) *pythonreward.Host
	// Sandboxes returns the host of programs that a policy wrote; nil if this program cannot run them.
	Sandboxes func(definition contract.Definition) *pythonreward.Host
	// Gateway returns the server at which agents ask the policy; nil if this program has no such server.
	Gateway func() (*gateway.Server, error)
	// CheckRows makes Build check that each row has the columns that the reward needs, if the reward can check that
	// without a reply, and that the functions of users can be loaded. Probes set it.
	CheckRows bool
	// Now is the clock of judges; if it is nil, nothing is timed.
	Now    func() time.Time
	Logger *slog.Logger
}

// Build builds the environment of a definition. An error is a *DefinitionError, a *environment.Fault or the context's.
func (b Builder) Build(ctx context.Context, definition contract.Definition) (environment.Environment, error) {
	env, err := b.build(ctx, definition)
	var fault *environment.Fault
	switch {
	case err == nil:
		return env, nil
	case errors.As(err, &fault) || ctx.Err() != nil:
		return nil, err
	default:
		return nil, &DefinitionError{Err: err}
	}
}

func (b Builder) build(ctx context.Context, definition contract.Definition) (environment.Environment, error) {
	if definition.ORS != nil {
		return b.newORS(*definition.ORS, definition.Interaction)
	}
	if definition.Dataset == nil || (definition.Reward == nil) != definition.SaysRewards() {
		return nil, errors.New("spec needs dataset with reward or interaction.python, an interaction.agent that says its " +
			"reward, or ors")
	}
	functions := b.newFunctions(definition)
	if episodes := definition.Episodes(); episodes != nil {
		return b.newEpisodes(ctx, functions, *definition.Dataset, *episodes)
	}
	if agent := definition.Agent(); agent != nil {
		return b.newAgent(ctx, functions, definition, *agent)
	}
	grader, err := b.newGrader(*definition.Reward, "spec.reward", functions)
	if err != nil {
		return nil, err
	}
	rows, err := b.newDataset(ctx, *definition.Dataset)
	if err != nil {
		return nil, err
	}
	if b.CheckRows {
		if err := verify.CheckRows(ctx, rows, grader); err != nil {
			return nil, err
		}
	}
	env, err := b.newInteraction(rows, grader, definition.Interaction, functions.sandbox)
	if err != nil {
		return nil, err
	}
	if env = functions.serve(env, rows, definition); b.CheckRows {
		return env, checkFunctions(ctx, env)
	}
	return env, nil
}

func (b Builder) newInteraction(rows dataset.Dataset, grader verify.Grader,
	interaction *settings.Interaction, sandbox *sandbox) (environment.Environment, error) {
	switch {
	case interaction == nil:
		return singleturn.New(rows, grader), nil
	case interaction.SolverJudge != nil:
		return workflow.NewSolverJudge(rows, grader, *interaction.SolverJudge)
	case interaction.SelfRefine != nil:
		return workflow.NewSelfRefine(rows, grader, *interaction.SelfRefine), nil
	case interaction.ToolUse != nil:
		return newToolUse(rows, grader, *interaction.ToolUse, sandbox)
	default:
		return nil, errors.New("spec.interaction has no member that this program knows")
	}
}

// newToolUse builds an environment with tools: the tools of its definition, or the calculator.
func newToolUse(rows dataset.Dataset, grader verify.Grader, definition settings.ToolUse,
	sandbox *sandbox) (environment.Environment, error) {
	if len(definition.Tools) > 0 {
		backend, err := sandbox.newTools(tooluse.NewLocal(rows, grader), definition.Tools)
		if err != nil {
			return nil, fmt.Errorf("spec.interaction.toolUse.tools: %w", err)
		}
		return tooluse.New(backend, toolUseOptions(definition))
	}
	return tooluse.New(tooluse.NewLocal(rows, grader, tooluse.Calculator{}), toolUseOptions(definition))
}

func toolUseOptions(definition settings.ToolUse) tooluse.Options {
	return tooluse.Options{
		SystemPrompt:    definition.SystemPrompt,
		MaxParseErrors:  int(*definition.ParseErrors.MaxConsecutive),
		MaskParseErrors: definition.ParseErrors.Train == settings.MaskParseErrors,
	}
}

func (b Builder) newDataset(ctx context.Context, definition contract.Dataset) (dataset.Dataset, error) {
	switch {
	case source.IsPlain(definition):
		return source.Generator(definition)
	case b.Data != nil:
		return b.Data(ctx, definition)
	default:
		return nil, errors.New("this program can open no data set that is read, cut or formatted")
	}
}

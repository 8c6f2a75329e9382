// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// functions are the users' functions that an environment calls. They run at one host.
type functions struct {
	host *pythonreward.Host
	// processBytes bounds each process.
	processBytes int64
	graders      []*pythonreward.Grader
	// sandbox runs programs of a policy.
	sandbox *sandbox
}

func (b Builder) newFunctions(definition contract.Definition) *functions {
	if definition.ProgramID() == "" || b.Programs == nil {
		return &functions{sandbox: b.newSandbox(definition)}
	}
	host := b.Programs(definition)
	// A worker waits until a problem is over, but a probe reports it at once.
	host.Wait, host.Logger = !b.CheckRows, b.Logger
	f := &functions{host: host, sandbox: b.newSandbox(definition)}
	if definition.Execution != nil {
		f.processBytes = definition.Execution.ProcessBytes
	}
	return f
}

// add adds a function.
func (f *functions) add(definition settings.Python) (verify.Grader, error) {
	if f.host == nil {
		return nil, errNoFunctions
	}
	grader, err := pythonreward.New(f.host, f.optionsOf(definition))
	if err != nil {
		return nil, err
	}
	f.graders = append(f.graders, grader)
	return grader, nil
}

var errNoFunctions = errors.New("this program can run no functions")

func (f *functions) optionsOf(definition settings.Python) pythonreward.Options {
	return pythonreward.Options{
		Code: definition.Code, Module: definition.Module, Function: definition.Function, Processes: int(definition.Processes),
		Concurrency: int(definition.Concurrency), Timeout: time.Duration(definition.TimeoutSeconds) * time.Second,
		MemoryBytes: f.processBytes, OnError: definition.OnError,
	}
}

// newEpisodes builds an environment whose episodes are code of a user.
func (b Builder) newEpisodes(ctx context.Context, f *functions, data contract.Dataset,
	definition settings.PythonEpisodes) (environment.Environment, error) {
	if f.host == nil {
		return nil, errNoFunctions
	}
	rows, err := b.newDataset(ctx, data)
	if err != nil {
		return nil, err
	}
	env, err := pythonreward.NewEpisodes(f.host, rows, definition.Roles, f.optionsOf(settings.Python{
		Source: definition.Source, Function: definition.Function, Processes: definition.Processes,
		Concurrency: definition.Concurrency,
	}))
	if err != nil {
		return nil, err
	}
	if b.CheckRows {
		return env, checkFunctions(ctx, env)
	}
	return env, nil
}

// serve returns an environment that is unavailable while its functions cannot be called.
func (f *functions) serve(env environment.Environment, rows dataset.Dataset,
	definition contract.Definition) environment.Environment {
	env = pythonreward.Guard(env, f.sandbox.programs)
	if len(f.graders) == 0 {
		return env
	}
	oneReply := definition.Interaction == nil || definition.Interaction.ToolUse != nil
	return pythonreward.Serve(env, rows, f.graders, definition.Reward.Python != nil && oneReply)
}

// checkFunctions checks that the functions of an environment can be loaded. If their code is wrong wherever it runs,
// the error describes the defect of the definition; other errors are faults, or the context's.
func checkFunctions(ctx context.Context, env environment.Environment) error {
	checker := environment.CheckerOf(env)
	if checker == nil {
		return nil
	}
	err := checker.Check(ctx)
	var code *pythonreward.CodeError
	if err == nil || errors.As(err, &code) && code.IsFinal() || ctx.Err() != nil {
		return err
	}
	return &environment.Fault{Err: err}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// Program is a program of a host that runs code of a policy, and not a function of a user. It is safe for concurrent
// use.
type Program struct{ function *function }

// defaultPath is the PATH of programs that do not inherit the PATH of an image.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// NewProgram returns a program, which has the variables of its host. Nothing is started yet. Each start of a plain
// program runs check, so that a command that does not exist is found before anything is sampled.
func NewProgram(host *Host, spec protocol.Spec, check protocol.Run) (*Program, error) {
	env := map[string]string{}
	if !host.InheritEnv {
		env["PATH"] = defaultPath
	}
	maps.Copy(env, spec.Env)
	maps.Copy(env, host.Env)
	spec.Env, spec.InheritEnv = env, host.InheritEnv
	spec, invalid := spec.Validate()
	if invalid != nil {
		return nil, invalid
	}
	f := &function{host: host, name: host.name(), spec: spec}
	if spec.Plain {
		params, err := json.Marshal(check)
		if err != nil {
			return nil, fmt.Errorf("encoding a run: %w", err)
		}
		f.check = &client.Call{Method: protocol.MethodRun, Params: params, Alone: true}
	}
	return &Program{function: f}, nil
}

// Check returns nil once the program can be called.
func (p *Program) Check(ctx context.Context) error { return p.function.Check(ctx) }

// Call calls the program. While it cannot be called, the call waits, as the calls of functions do.
func (p *Program) Call(ctx context.Context, call client.Call) (json.RawMessage, error) {
	return p.function.call(ctx, call)
}

// guarded is an environment whose rewards or tools need programs.
type guarded struct {
	environment.Environment
	programs []*Program
}

// Guard returns the environment as one that may be unavailable for a while: until its programs run.
func Guard(env environment.Environment, programs []*Program) environment.Environment {
	if len(programs) == 0 {
		return env
	}
	return &guarded{Environment: env, programs: programs}
}

// Start implements environment.Environment.
func (g *guarded) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	if err := g.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &environment.Fault{Unavailable: true, Err: err}
	}
	return g.Environment.Start(ctx, task)
}

// Answers implements environment.Answerer.
func (g *guarded) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	if answerer, ok := g.Environment.(environment.Answerer); ok {
		return answerer.Answers(ctx, task)
	}
	return "", "", environment.ErrNoAnswers
}

// Checker returns the environment as an environment.Checker.
func (g *guarded) Checker() environment.Checker { return g }

// Check implements environment.Checker.
func (g *guarded) Check(ctx context.Context) error {
	for _, program := range g.programs {
		if err := program.Check(ctx); err != nil {
			return err
		}
	}
	if checker := environment.CheckerOf(g.Environment); checker != nil {
		return checker.Check(ctx)
	}
	return nil
}

var (
	_ environment.Environment = (*guarded)(nil)
	_ environment.Answerer    = (*guarded)(nil)
	_ environment.Checker     = (*guarded)(nil)
)

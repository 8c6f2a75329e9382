// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandboxtools has tools with which a policy runs programs: Python that keeps its variables, and a shell. All
// tools of an episode share one session of a sandbox, with one directory, from the first call to the end of the
// episode.
package sandboxtools

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

//go:embed session_driver.py
var driver string

const driverFile = "session_driver.py"

// Kind is the kind of program that a tool runs.
type Kind string

// The kinds of tools, which are the methods of the session's program.
const (
	Python Kind = "python"
	Shell  Kind = "shell"
)

// Tool is a tool with the name by which the policy calls it.
type Tool struct {
	Name string
	Kind Kind
}

// The limits of a call: processor time, and time on the clock.
const (
	cpuSeconds   = 30
	clockSeconds = 100
)

// SessionBytes is the memory of a session.
const SessionBytes = 256 << 20

var descriptions = map[Kind]chat.Tool{
	Python: {
		Description: "Runs Python and returns what it prints, and the value of its last expression. Variables stay until " +
			"the end of the task.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`),
	},
	Shell: {
		Description: "Runs a command of sh in a directory of the task and returns what it prints.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
	},
}

// parameters are the names of the one argument of each kind.
var parameters = map[Kind]string{Python: "code", Shell: "command"}

// NewProgram returns the program of the sessions of a host. processes is the number of sessions that are open at once.
func NewProgram(host *pythonreward.Host, processes int, minimum isolation.Level) (*pythonreward.Program, error) {
	return pythonreward.NewProgram(host, protocol.Spec{
		Kind: "tools", Command: []string{cmp.Or(host.Interpreter, "python3"), driverFile},
		Env: map[string]string{
			"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
			"OPENBLAS_NUM_THREADS": "1",
		},
		Files: map[string]string{driverFile: driver}, Processes: processes,
		Limits:  protocol.Limits{CPUSeconds: cpuSeconds, CallSeconds: clockSeconds, MemoryBytes: SessionBytes},
		Sandbox: &protocol.Sandbox{Minimum: minimum},
	}, protocol.Run{})
}

// Backend adds tools to the episodes of another backend, which has none.
type Backend struct {
	tooluse.Backend
	program *pythonreward.Program
	tools   []Tool
}

// New returns a Backend.
func New(inner tooluse.Backend, program *pythonreward.Program, tools []Tool) *Backend {
	return &Backend{Backend: inner, program: program, tools: tools}
}

// Open implements tooluse.Backend.
func (b *Backend) Open(ctx context.Context, task environment.Task) (tooluse.Session, error) {
	inner, err := b.Backend.Open(ctx, task)
	if err != nil {
		return nil, err
	}
	return &session{Session: inner, backend: b, programs: b.program.NewSession(task.Seed)}, nil
}

// Answers implements environment.Answerer, if the other backend does.
func (b *Backend) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	if answerer, ok := b.Backend.(environment.Answerer); ok {
		return answerer.Answers(ctx, task)
	}
	return "", "", environment.ErrNoAnswers
}

// session is an episode.
type session struct {
	tooluse.Session
	backend  *Backend
	programs *pythonreward.Session
}

// Tools implements tooluse.Session.
func (s *session) Tools(context.Context) ([]chat.Tool, error) {
	all := make([]chat.Tool, len(s.backend.tools))
	for i, tool := range s.backend.tools {
		all[i] = descriptions[tool.Kind]
		all[i].Name = tool.Name
	}
	return all, nil
}

// Call implements tooluse.Session. If the policy's own program ends its session, that is a result.
func (s *session) Call(ctx context.Context, call chat.ToolCall) (tooluse.Result, error) {
	names := make([]string, len(s.backend.tools))
	for i, tool := range s.backend.tools {
		if tool.Name == call.Name {
			return s.run(ctx, tool, call.Arguments)
		}
		names[i] = tool.Name
	}
	text := fmt.Sprintf("Error: there is no tool %q. The tools are: %s.", call.Name, strings.Join(names, ", "))
	return tooluse.Result{Text: text, Invalid: true}, nil
}

func (s *session) run(ctx context.Context, tool Tool, arguments string) (tooluse.Result, error) {
	var given map[string]json.RawMessage
	var text string
	name := parameters[tool.Kind]
	if json.Unmarshal([]byte(arguments), &given) != nil || json.Unmarshal(given[name], &text) != nil || len(given) != 1 {
		return tooluse.Result{
			Text: fmt.Sprintf("Error: the arguments must be an object with one text, %s.", name), Invalid: true}, nil
	}
	params, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return tooluse.Result{}, &environment.Fault{Permanent: true, Err: fmt.Errorf("encoding a call of a tool: %w", err)}
	}
	value, err := s.programs.Call(ctx, string(tool.Kind), params)
	var ended *pythonreward.CodeError
	if errors.As(err, &ended) {
		return tooluse.Result{Text: "Error: " + ended.Error() + ". The session has ended; the next call begins another."}, nil
	}
	if err != nil {
		return tooluse.Result{}, err
	}
	var result string
	if err := json.Unmarshal(value, &result); err != nil {
		return tooluse.Result{Text: "Error: the session gave no result."}, nil // the policy's program wrote the line
	}
	return tooluse.Result{Text: result}, nil
}

// Close implements tooluse.Session.
func (s *session) Close(ctx context.Context) {
	s.programs.Close(ctx)
	s.Session.Close(ctx)
}

var (
	_ tooluse.Backend      = (*Backend)(nil)
	_ environment.Answerer = (*Backend)(nil)
	_ tooluse.Session      = (*session)(nil)
)

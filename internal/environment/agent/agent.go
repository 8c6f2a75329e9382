// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent is the environment whose episodes are played by programs that others wrote. A runner runs them, in a
// container or a process of its own; they ask the policy at a gateway, and know neither rewards nor training. A grader
// decides the reward of an episode once all of its processes have ended, or the agent does if the definition says so.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Source is the part of an episode that is graded.
type Source int

// The sources.
const (
	// LastMessage is the policy's last reply.
	LastMessage Source = iota
	// Output is the value that the function returns, or the text that the command prints.
	Output
	// File is a file that the command has written.
	File
	// Agent is the reward that the agent itself reports.
	Agent
)

// The files of a command.
const (
	taskFile   = "task.json"
	resultFile = "result.json"
)

// Variables are the names of the environment variables that differ between commands.
var Variables = []string{openAIURL, openAIKey, anthropicURL, anthropicKey, taskVariable, resultVariable}

const (
	openAIURL      = "OPENAI_BASE_URL"
	openAIKey      = "OPENAI_API_KEY"
	anthropicURL   = "ANTHROPIC_BASE_URL"
	anthropicKey   = "ANTHROPIC_API_KEY"
	taskVariable   = "TASK_FILE"
	resultVariable = "RESULT_FILE"
)

// Options are the options of the environment.
type Options struct {
	// Command says that the program is a command, and not a function in Python.
	Command bool
	// Source is the part of an episode that is graded, and File the name of the file.
	Source Source
	File   string
	// Roles are the names of the models.
	Roles []string
	// Frozen are the models besides the policy, by name.
	Frozen map[string]environment.FrozenModel
	// Fields are the columns that the agent gets besides id, prompt and messages.
	Fields []string
	// Unsupported decides whether options that the gateway does not support are ignored or refused.
	Unsupported dialect.Policy
	// OnlyLast trains on the conversation with the last reply alone.
	OnlyLast bool
	// Grace is how long the agent may go on after a limit.
	Grace time.Duration
	// Check returns nil if episodes can be graded. It is nil if they always can be.
	Check func(ctx context.Context) error
}

// Program plays episodes, as a *pythonreward.Agent does.
type Program interface {
	Check(ctx context.Context) error
	// InPods reports whether the program reaches the gateway through its runner.
	InPods() bool
	Play(ctx context.Context, played pythonreward.Episode) (json.RawMessage, pythonreward.Ending, error)
}

// Environment has the rows of a data set as tasks.
type Environment struct {
	program Program
	rows    dataset.Dataset
	// grader is nil with the source Agent.
	grader  verify.Grader
	gateway func() (*gateway.Server, error)
	options Options

	mu sync.Mutex
	// lost counts the processes that tries have lost, by the seeds of the tries.
	lost map[uint64]int
}

// New returns the environment. Nothing is started yet.
func New(program Program, rows dataset.Dataset, grader verify.Grader, server func() (*gateway.Server, error),
	options Options) *Environment {
	return &Environment{program: program, rows: rows, grader: grader, gateway: server, options: options,
		lost: map[uint64]int{}}
}

// Splits implements environment.Environment.
func (e *Environment) Splits(ctx context.Context) ([]environment.Split, error) {
	return e.rows.Splits(ctx)
}

// Checker returns the environment as an environment.Checker: no episode begins while the agent cannot be started.
func (e *Environment) Checker() environment.Checker { return e }

// Check implements environment.Checker.
func (e *Environment) Check(ctx context.Context) error {
	if err := e.program.Check(ctx); err != nil || e.options.Check == nil {
		return err
	}
	return e.options.Check(ctx)
}

// Examples implements environment.Exampler. The row's answer is a reply that some agents turn into a result.
func (e *Environment) Examples(ctx context.Context, task environment.Task) ([]string, error) {
	row, err := e.rows.Row(ctx, task.Split, task.Index)
	if err != nil {
		return nil, err
	}
	if row.Answer == "" {
		return []string{"I do not know.", ""}, nil
	}
	return []string{row.Answer, ""}, nil
}

// Start implements environment.Environment.
func (e *Environment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	if err := e.Check(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &environment.Fault{Unavailable: true, Err: err}
	}
	row, err := e.rows.Row(ctx, task.Split, task.Index)
	if err != nil {
		return nil, err
	}
	return &episode{Environment: e, row: row, seed: task.Seed}, nil
}

// episode is one run of the agent.
type episode struct {
	environment.Unasked
	*Environment
	row  dataset.Row
	seed uint64
}

// Close implements environment.Episode. It does nothing, since Run leaves nothing behind.
func (*episode) Close(context.Context) {}

// Run implements environment.Program.
func (e *episode) Run(ctx context.Context, policy environment.Policy) (environment.Turn, error) {
	asked, ok := policy.(environment.AgentPolicy)
	if !ok {
		return environment.Turn{}, fault(errors.New("agents cannot be played here"))
	}
	server, err := e.gateway()
	if err != nil {
		return environment.Turn{}, &environment.Fault{Unavailable: true, Err: fmt.Errorf("serving an agent: %w", err)}
	}
	played := pythonreward.Episode{Seed: e.seed, Alone: e.losses() > 0}
	options := gateway.Options{Roles: e.options.Roles, Frozen: e.options.Frozen, Unsupported: e.options.Unsupported}
	if e.program.InPods() {
		played.Gateway, played.Serve = client.NewGateway(), server.ServeConn
		options.Address = "http://" + played.Gateway
	}
	served := server.Open(ctx, asked, options)
	defer served.Close()
	if played.Params, err = e.params(served); err != nil {
		return environment.Turn{}, fault(err)
	}
	said, err := e.play(ctx, served, expiryOf(asked), played)
	if err != nil {
		return environment.Turn{}, err
	}
	turn, err := e.graded(ctx, asked, said)
	if err != nil {
		return environment.Turn{}, err
	}
	turn.Metrics = maps.Clone(turn.Metrics)
	for name, count := range served.Counts() {
		if turn.Metrics == nil {
			turn.Metrics = map[string]float64{}
		}
		turn.Metrics[name] = count
	}
	turn.OnlyLast = e.options.OnlyLast
	return turn, nil
}

func fault(err error) error { return &environment.Fault{Permanent: true, Err: err} }

// expiryOf returns the channel that is closed once the time of the episode is over, or nil if the policy does not
// report that.
func expiryOf(policy environment.AgentPolicy) <-chan struct{} {
	if timed, ok := policy.(environment.TimedPolicy); ok {
		return timed.Expired()
	}
	return nil
}

// play runs the agent to its end, and decides whether the end is a result, a limit or a fault.
func (e *episode) play(ctx context.Context, served *gateway.Episode, expired <-chan struct{},
	played pythonreward.Episode) (json.RawMessage, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	go e.endAfterLimit(running, served, expired, stop)
	value, end, err := e.program.Play(running, played)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	limit := served.LastLimit()
	if wait.IsClosed(expired) {
		limit = environment.LimitEpisodeSeconds
	}
	wasEnded := limit != "" && running.Err() != nil
	if ending := served.End(); !ending.IsWhole() && !wasEnded {
		return nil, e.interrupted(ctx, served, ending)
	}
	switch {
	case end == pythonreward.Lost && running.Err() == nil: // It may have been about to handle a limit.
		e.lose()
		return nil, &environment.Fault{Interrupted: true, Err: err}
	case err != nil && limit != "": // It ended because of the limit, or at the end of the grace.
		return nil, &environment.LimitError{Limit: limit}
	case err != nil:
		return nil, fault(err)
	}
	return value, nil
}

// endAfterLimit ends an agent at the end of the grace, which begins when a request reaches a limit or the time of the
// episode is over.
func (e *episode) endAfterLimit(ctx context.Context, served *gateway.Episode, expired <-chan struct{}, stop func()) {
	select {
	case <-served.Limited():
	case <-expired:
	case <-ctx.Done():
		return
	}
	grace := time.NewTimer(e.options.Grace)
	defer grace.Stop()
	select {
	case <-grace.C:
		stop()
	case <-ctx.Done():
	}
}

// interrupted returns the fault of an agent that ended before its requests did. It first waits for these requests, so
// that the next agent is answered at once.
func (e *episode) interrupted(ctx context.Context, served *gateway.Episode, ending gateway.Ending) error {
	resume := environment.RecorderFrom(ctx).Pause()
	err := served.Settle(ctx)
	resume()
	if err != nil {
		return err
	}
	return &environment.Fault{Interrupted: true, Err: fmt.Errorf("the agent ended before its requests: "+
		"%d were unanswered, %d had been asked to come back, and the client of %d had left",
		ending.Unanswered, ending.Refused, ending.Left)}
}

// losses returns the number of processes that this try has lost.
func (e *episode) losses() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost[e.seed]
}

// lose counts a process that has ended, perhaps because of another episode. The next process plays this episode
// alone.
func (e *episode) lose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	const most = 10_000
	if len(e.lost) > most {
		clear(e.lost)
	}
	e.lost[e.seed]++
}

// task returns the fields of the row that the agent gets: id, prompt, messages, and the columns of Options.Fields. An
// agent that reports the reward itself gets all columns, including the answer.
func (e *episode) task() map[string]any {
	all := e.row.AllFields()
	task := map[string]any{}
	if e.options.Source == Agent {
		task = all
	}
	for _, name := range append([]string{dataset.FieldID, dataset.FieldPrompt}, e.options.Fields...) {
		if value, ok := all[name]; ok {
			task[name] = value
		}
	}
	messages := make([]map[string]string, len(e.row.Messages))
	for i, m := range e.row.Messages {
		messages[i] = map[string]string{"role": m.Role, "content": m.Content}
	}
	task["messages"] = messages
	return task
}

// params returns the parameters of the call.
func (e *episode) params(served *gateway.Episode) (json.RawMessage, error) {
	task := e.task()
	if !e.options.Command {
		return json.Marshal(map[string]any{"task": task, "base_url": served.URLWithToken(),
			"rewards": e.options.Source == Agent})
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, fmt.Errorf("encoding a task: %w", err)
	}
	params := spawn.Params{Files: map[string]string{taskFile: string(text)}, Env: map[string]string{
		openAIURL: served.URL(dialect.OpenAI), openAIKey: served.Token(),
		anthropicURL: served.URL(dialect.Anthropic), anthropicKey: served.Token(),
		taskVariable: "$(DIR)/" + taskFile,
	}}
	switch e.options.Source {
	case File:
		params.Read = []string{e.options.File}
	case Agent:
		params.Read, params.Env[resultVariable] = []string{resultFile}, "$(DIR)/"+resultFile
	}
	return json.Marshal(params)
}

// graded returns the turn with the reward of the episode.
func (e *episode) graded(ctx context.Context, policy environment.AgentPolicy,
	value json.RawMessage) (environment.Turn, error) {
	said, err := e.read(value)
	if err != nil {
		return environment.Turn{}, err
	}
	switch e.options.Source {
	case Agent:
		return rewardOf(said)
	case LastMessage:
		reply, err := policy.Last()
		if err != nil {
			return environment.Turn{}, err
		}
		return e.grade(ctx, reply)
	default:
		return e.grade(ctx, environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: said}, Seed: e.seed})
	}
}

func (e *episode) grade(ctx context.Context, reply environment.Reply) (environment.Turn, error) {
	score, err := e.grader.Grade(ctx, e.row, reply)
	return verify.Turn(score, err, reply)
}

// read returns the text that Options.Source selects. A command that fails is a fault, and never a reward of 0.
func (e *episode) read(value json.RawMessage) (string, error) {
	if !e.options.Command {
		var said struct {
			Output *string `json:"output"`
		}
		switch err := json.Unmarshal(value, &said); {
		case err != nil:
			return "", fault(fmt.Errorf("reading what an agent has returned: %w", err))
		case e.options.Source == Agent:
			return string(value), nil
		case e.options.Source == Output && said.Output == nil:
			return "", fault(errors.New("the agent returned no text: return the answer, or give reward.from LastMessage"))
		case said.Output == nil:
			return "", nil
		}
		return *said.Output, nil
	}
	var left spawn.Result
	if err := json.Unmarshal(value, &left); err != nil {
		return "", fault(fmt.Errorf("reading what a command has left: %w", err))
	}
	if left.Exit != 0 {
		return "", fault(fmt.Errorf("the command ended with the exit code %d: %s", left.Exit, left.Last))
	}
	name := map[Source]string{File: e.options.File, Agent: resultFile}[e.options.Source]
	if name == "" {
		return left.Output, nil
	}
	text, ok := left.Files[name]
	if !ok {
		return "", fault(fmt.Errorf("the command has not written the file %s", name))
	}
	return text, nil
}

var (
	_ environment.Environment = (*Environment)(nil)
	_ environment.Exampler    = (*Environment)(nil)
	_ environment.Checker     = (*Environment)(nil)
	_ environment.Program     = (*episode)(nil)
)

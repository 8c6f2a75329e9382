// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"context"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// Tool runs in this process and is a function of its arguments. It is safe for concurrent use.
type Tool interface {
	// Describe gives the tool's name, what it is for and the schema of its arguments.
	Describe() chat.Tool
	// Call gives the result for arguments, which are what the policy wrote. An error says what is wrong with
	// them, to the policy.
	Call(arguments string) (string, error)
}

// Local is the world of a data set that asks, tools of this process that help, and a verifier that says what
// the answer is worth.
type Local struct {
	rows     dataset.Dataset
	verifier verify.Verifier
	tools    map[string]Tool
	// described are the tools in their order, and names what they are called.
	described []chat.Tool
	names     string
}

// NewLocal gives the world of the rows, the verifier and the tools, which have names of their own.
func NewLocal(rows dataset.Dataset, verifier verify.Verifier, tools ...Tool) *Local {
	l := &Local{rows: rows, verifier: verifier, tools: map[string]Tool{}}
	var names []string
	for _, tool := range tools {
		described := tool.Describe()
		l.tools[described.Name] = tool
		l.described = append(l.described, described)
		names = append(names, described.Name)
	}
	l.names = strings.Join(names, ", ")
	return l
}

// Splits implements World.
func (l *Local) Splits(context.Context) ([]environment.Split, error) { return l.rows.Splits(), nil }

// Open implements World. A row that is not there is a permanent fault.
func (l *Local) Open(_ context.Context, task environment.Task) (Session, error) {
	row, err := l.row(task)
	if err != nil {
		return nil, err
	}
	return &localSession{Local: l, row: row}, nil
}

// Answers implements environment.Answerer.
func (l *Local) Answers(_ context.Context, task environment.Task) (right, wrong string, err error) {
	row, err := l.row(task)
	if err != nil {
		return "", "", err
	}
	return row.Answer, l.verifier.Wrong(row.Answer), nil
}

func (l *Local) row(task environment.Task) (dataset.Row, error) {
	row, err := l.rows.Row(task.Split, task.Index)
	if err != nil {
		return dataset.Row{}, &environment.Fault{Permanent: true, Err: err}
	}
	return row, nil
}

// localSession has no state but its row.
type localSession struct {
	*Local
	row dataset.Row
}

// Messages implements Session.
func (s *localSession) Messages(context.Context) ([]chat.Message, error) {
	return []chat.Message{{Role: "user", Content: s.row.Prompt}}, nil
}

// Tools implements Session.
func (s *localSession) Tools(context.Context) ([]chat.Tool, error) { return s.described, nil }

// Call implements Session.
func (s *localSession) Call(_ context.Context, call chat.ToolCall) (Result, error) {
	tool, ok := s.tools[call.Name]
	if !ok {
		text := fmt.Sprintf("Error: there is no tool %q. The tools are: %s.", call.Name, s.names)
		return Result{Text: text, Wrong: true}, nil
	}
	text, err := tool.Call(call.Arguments)
	if err != nil {
		return Result{Text: "Error: " + err.Error() + ".", Wrong: true}, nil
	}
	return Result{Text: text}, nil
}

// Answer implements Session.
func (s *localSession) Answer(_ context.Context, reply environment.Reply) (Outcome, error) {
	return s.grade(reply), nil
}

// Finish implements Session. A reply that calls tools or cannot be read is no answer, whatever else it says:
// the verifier is shown one that says nothing. Without any reply there is nothing to verify, and no reward.
func (s *localSession) Finish(_ context.Context, last *environment.Reply) (Outcome, error) {
	if last == nil {
		return Outcome{}, nil
	}
	silent := *last
	silent.Message = chat.Message{Role: last.Message.Role}
	return s.grade(silent), nil
}

func (s *localSession) grade(reply environment.Reply) Outcome {
	verdict := s.verifier.Verify(s.row.Answer, reply)
	return Outcome{Rewards: []environment.Reward{{Value: verdict.Reward}}, Metrics: verdict.Metrics}
}

// Close implements Session.
func (s *localSession) Close() {}

var (
	_ World                = (*Local)(nil)
	_ environment.Answerer = (*Local)(nil)
	_ Session              = (*localSession)(nil)
)

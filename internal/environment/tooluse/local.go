// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tooluse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// Tool runs in this process and is a function of its arguments. It is safe for concurrent use.
type Tool interface {
	// Describe returns the tool's name, its purpose and the schema of its arguments.
	Describe() chat.Tool
	// Call returns the result for arguments as the policy wrote them. An error describes the defect of the arguments to
	// the policy.
	Call(arguments string) (string, error)
}

// Local is the backend with the questions of a data set, tools of this process, and a grader that scores the answer.
type Local struct {
	verify.Tasks

	tools map[string]Tool
	// described are the tools in their order, and names are their names, for messages.
	described []chat.Tool
	names     string
}

// NewLocal returns the backend of the rows, the grader and the tools. The names of the tools must differ.
func NewLocal(rows dataset.Dataset, grader verify.Grader, tools ...Tool) *Local {
	l := &Local{Tasks: verify.Tasks{Rows: rows, Grader: grader}, tools: map[string]Tool{}}
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

// Open implements Backend. An unknown row is a permanent fault.
func (l *Local) Open(ctx context.Context, task environment.Task) (Session, error) {
	row, err := l.Row(ctx, task)
	if err != nil {
		return nil, err
	}
	return &localSession{Local: l, row: row}, nil
}

// localSession is a session of one row. It has no other state.
type localSession struct {
	*Local
	row dataset.Row
}

// Messages implements Session.
func (s *localSession) Messages(context.Context) ([]chat.Message, error) {
	return slices.Clip(s.row.Messages), nil
}

// Tools implements Session.
func (s *localSession) Tools(context.Context) ([]chat.Tool, error) { return s.described, nil }

// Call implements Session.
func (s *localSession) Call(_ context.Context, call chat.ToolCall) (Result, error) {
	tool, ok := s.tools[call.Name]
	if !ok {
		text := fmt.Sprintf("Error: there is no tool %q. The tools are: %s.", call.Name, s.names)
		return Result{Text: text, Invalid: true}, nil
	}
	text, err := tool.Call(call.Arguments)
	if err != nil {
		return Result{Text: "Error: " + err.Error() + ".", Invalid: true}, nil
	}
	return Result{Text: text}, nil
}

// Answer implements Session.
func (s *localSession) Answer(ctx context.Context, reply environment.Reply) (Outcome, error) {
	return s.grade(ctx, reply)
}

// Finish implements Session. A reply that calls tools or breaks the format is not an answer, whatever its text: the
// grader scores an empty one instead. Without any reply there is no reward.
func (s *localSession) Finish(ctx context.Context, last *environment.Reply) (Outcome, error) {
	if last == nil {
		return Outcome{}, nil
	}
	empty := *last
	empty.Message = chat.Message{Role: last.Message.Role}
	return s.grade(ctx, empty)
}

func (s *localSession) grade(ctx context.Context, reply environment.Reply) (Outcome, error) {
	score, err := s.Grader.Grade(ctx, s.row, reply)
	turn, err := verify.Turn(score, err, reply)
	return Outcome{Rewards: turn.Rewards, Metrics: turn.Metrics, Ungraded: turn.Ungraded}, err
}

// Close implements Session.
func (s *localSession) Close(context.Context) {}

var (
	_ Backend              = (*Local)(nil)
	_ environment.Answerer = (*Local)(nil)
	_ Session              = (*localSession)(nil)
)

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tooluse is the environment of several turns in which the policy calls tools until it answers. A Backend has
// the tools and the rewards. The built-in backend, Local, consists of a data set, a verifier and tools of this
// process, and is a function of the task alone.
//
// A reply that calls tools gets their results. A call of an unknown tool, or with wrong arguments, gets a result that
// describes the problem. So does a reply that breaks the model's format; after a few of them in a row the episode is
// over. A reply without calls is the answer. An episode that ends without an answer gets the rewards that the backend
// gives it as it stands, and no others.
package tooluse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// An episode has these metrics.
const (
	// MetricToolCalls counts calls, including invalid ones.
	MetricToolCalls = "tool_calls"
	// MetricToolErrors counts calls of unknown tools or with wrong arguments.
	MetricToolErrors = "tool_errors"
	// MetricParseErrors counts replies that broke the format.
	MetricParseErrors = "parse_errors"
	// MetricTurns counts replies.
	MetricTurns = "turns"
)

// ToolsPlaceholder is replaced by the tools in a system prompt, one JSON object a line.
const ToolsPlaceholder = "$(tools)"

// Options decide how the tools are declared to the policy and how replies that break the format are handled.
type Options struct {
	// SystemPrompt is the first message. It is empty if there is no such message. If it contains ToolsPlaceholder, it
	// declares the tools, and the model's format does not.
	SystemPrompt string
	// MaxParseErrors is the number of replies in a row that may break the format. One more ends the episode.
	MaxParseErrors int
	// MaskParseErrors keeps replies that break the format out of the training data.
	MaskParseErrors bool
}

// Environment runs episodes with the tools of a backend.
type Environment struct {
	backend Backend
	options Options
}

// New returns the environment of the backend. It fails if the options are invalid.
func New(backend Backend, options Options) (*Environment, error) {
	if options.MaxParseErrors < 0 {
		return nil, fmt.Errorf("parseErrors.maxConsecutive is %d, it must be at least 0", options.MaxParseErrors)
	}
	return &Environment{backend: backend, options: options}, nil
}

// Splits implements environment.Environment.
func (e *Environment) Splits(ctx context.Context) ([]environment.Split, error) {
	return e.backend.Splits(ctx)
}

// Start implements environment.Environment.
func (e *Environment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	session, err := e.backend.Open(ctx, task)
	if err != nil {
		return nil, err
	}
	return &episode{session: session, options: e.options}, nil
}

// Answers implements environment.Answerer, if the backend does.
func (e *Environment) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	answerer, ok := e.backend.(environment.Answerer)
	if !ok {
		return "", "", environment.ErrNoAnswers
	}
	return answerer.Answers(ctx, task)
}

// Checker returns the backend's check, or nil if it needs none.
func (e *Environment) Checker() environment.Checker {
	checker, _ := e.backend.(environment.Checker)
	return checker
}

// opening returns the first messages, and the tools that the model's format has to declare.
func (o Options) opening(messages []chat.Message, tools []chat.Tool) ([]chat.Message, []chat.Tool) {
	if o.SystemPrompt == "" {
		return messages, tools
	}
	text := strings.ReplaceAll(o.SystemPrompt, ToolsPlaceholder, describe(tools))
	if text != o.SystemPrompt {
		tools = nil
	}
	return append([]chat.Message{{Role: "system", Content: text}}, messages...), tools
}

// describe returns the tools as text, one a line.
func describe(tools []chat.Tool) string {
	lines := make([]string, len(tools))
	for i, tool := range tools {
		parameters := tool.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage("{}")
		}
		line, err := json.Marshal(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		}{tool.Name, tool.Description, parameters})
		if err != nil { // The schema is not JSON, so it is written as text.
			line = fmt.Appendf(nil, "%s: %s %s", tool.Name, tool.Description, tool.Parameters)
		}
		lines[i] = string(line)
	}
	return strings.Join(lines, "\n")
}

var (
	_ environment.Environment = (*Environment)(nil)
	_ environment.Answerer    = (*Environment)(nil)
)

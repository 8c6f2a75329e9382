// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tooluse plays episodes of several turns in which the policy calls tools until it answers. Whose
// tools and rewards they are is a World's business; the one that is built in puts a data set, a verifier
// and tools of this process together and is a function of the task alone.
//
// A reply that calls tools gets their results. A call of a tool that is not there, or with wrong arguments,
// gets a result that says so. A reply that breaks the model's format gets a message that names the problem,
// so that the policy can mend it; after a few of them in a row the episode is over. A reply without calls
// is the answer. Nothing of this invents a reward: an episode that ends without an answer gets what the
// world gives for it as it stands.
package tooluse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// Metrics of an episode.
const (
	// MetricToolCalls counts calls that were made, wrong ones among them.
	MetricToolCalls = "tool_calls"
	// MetricToolErrors counts calls with no such tool or arguments.
	MetricToolErrors = "tool_errors"
	// MetricParseErrors counts replies that broke the format.
	MetricParseErrors = "parse_errors"
	// MetricTurns counts replies.
	MetricTurns = "turns"
)

// ToolsPlaceholder in a system prompt is replaced by the tools, one JSON object a line.
const ToolsPlaceholder = "$(tools)"

// Options are how the policy and the tools are brought together.
type Options struct {
	// SystemPrompt is the first message; empty for none. With ToolsPlaceholder in it, it is where the tools
	// are told, and the model's format says nothing of them.
	SystemPrompt string
	// MaxParseErrors replies in a row that break the format are answered with what is wrong; one more ends the
	// episode.
	MaxParseErrors int
	// MaskParseErrors keeps replies that break the format out of the training data.
	MaskParseErrors bool
}

// Environment plays episodes in a world.
type Environment struct {
	world   World
	options Options
}

// New gives the environment of the world. Options that no episode can be played with are an error.
func New(world World, options Options) (*Environment, error) {
	if options.MaxParseErrors < 0 {
		return nil, fmt.Errorf("parseErrors.maxConsecutive is %d, it must be at least 0", options.MaxParseErrors)
	}
	return &Environment{world: world, options: options}, nil
}

// Splits implements environment.Environment.
func (e *Environment) Splits(ctx context.Context) ([]environment.Split, error) {
	return e.world.Splits(ctx)
}

// Start implements environment.Environment.
func (e *Environment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	session, err := e.world.Open(ctx, task)
	if err != nil {
		return nil, err
	}
	return &episode{session: session, options: e.options}, nil
}

// Answers implements environment.Answerer, if the world does.
func (e *Environment) Answers(ctx context.Context, task environment.Task) (right, wrong string, err error) {
	answerer, ok := e.world.(environment.Answerer)
	if !ok {
		return "", "", &environment.Fault{Permanent: true, Err: errors.New("the world knows no answers")}
	}
	return answerer.Answers(ctx, task)
}

// opening gives the first messages and the tools that the model's format is to declare.
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

// describe gives the tools as text, one a line.
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
		if err != nil { // a schema that is no JSON is told as the text that it is
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

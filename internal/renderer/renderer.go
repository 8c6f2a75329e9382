// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package renderer turns conversations into the token ids that a model was taught to read, and sampled ids
// back into messages and tool calls. It knows neither environments nor Tinker.
//
// A conversation that goes on should extend what was sampled before, token by token: then all its turns
// train as one sequence. Text that is rendered again need not give the ids that were sampled, so a message
// carries them, and a renderer whose format keeps history as it was puts them into the next prompt
// unchanged.
package renderer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Conversation is what a reply is asked for.
type Conversation struct {
	Messages []Message
	// Tools that may be called.
	Tools []Tool
}

// Message is one message of a conversation.
type Message struct {
	// Role is one of the four roles.
	Role    string
	Content string
	// Calls of tools by the assistant.
	Calls []ToolCall
	// CallID of the call that a tool's message answers.
	CallID string
	// Sampled are the ids that the policy gave for this message, stop token included; nil for a message
	// that was not sampled.
	Sampled []int32
}

// Tool that can be called.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON schema; empty for none.
	Parameters json.RawMessage
}

// ToolCall is a call of a tool as the policy wrote it.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the text of a JSON object.
	Arguments string
}

// Stop is what ends a reply; one of the two, as the API takes no mixture.
type Stop struct {
	Strings []string
	Tokens  []int32
}

// Ending is how a reply ended.
type Ending uint8

// The endings.
const (
	// Stopped replies end with the stop, once.
	Stopped Ending = iota
	// Truncated replies have no stop.
	Truncated
	// Malformed replies ended, but break the format.
	Malformed
)

// Parsed is a reply.
type Parsed struct {
	// Message of the assistant, with its sampled ids. Content is as much text as there is, whatever the
	// ending.
	Message Message
	Ending  Ending
	// Problem with a malformed reply, for people and for the policy.
	Problem string
}

// Renderer is one model family's format. It is safe for concurrent use.
type Renderer interface {
	// Prompt gives the ids of a conversation up to where the assistant's reply begins. What the format
	// cannot express is ErrUnsupported.
	Prompt(conversation Conversation) ([]int32, error)
	// Stop is what ends a reply.
	Stop() Stop
	// Parse reads sampled ids. An error means ids that the vocabulary does not have.
	Parse(sampled []int32) (Parsed, error)
}

// ErrUnsupported says that a renderer's format has no place for something.
var ErrUnsupported = errors.New("the renderer's format has no place for it")

// models is the renderer of each known model, by the model's name at the endpoint.
var models = map[string]func(tokenizer.Tokenizer) (Renderer, error){
	"tinkersim/byte-136k": func(t tokenizer.Tokenizer) (Renderer, error) { return newRoleColon(t, "<|end|>") },
}

// UnknownModelError says that there is no renderer for a model.
type UnknownModelError struct {
	Model string
	// Known are the models that have one, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownModelError) Error() string {
	return fmt.Sprintf("no renderer is known for model %q, only for %s", e.Model, strings.Join(e.Known, ", "))
}

// ForModel gives the renderer of a model with its tokenizer. An error is an *UnknownModelError, or a
// *tokenizer.UnknownModelError.
func ForModel(name string) (Renderer, error) {
	build, ok := models[name]
	if !ok {
		return nil, &UnknownModelError{Model: name, Known: slices.Sorted(maps.Keys(models))}
	}
	t, err := tokenizer.ForModel(name)
	if err != nil {
		return nil, err
	}
	return build(t)
}

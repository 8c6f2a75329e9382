// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatjson reads conversations from JSON and writes parsed replies as JSON, in the common form of
// chat APIs:
//
//	{"messages": [
//	  {"role": "user", "content": "2+2?"},
//	  {"role": "assistant", "content": [{"type": "thinking", "thinking": "two and two"}, {"type": "text", "text": "4"}],
//	   "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2}"}}]},
//	  {"role": "tool", "content": "4", "tool_call_id": "call_1", "name": "add"}],
//	 "tools": [{"name": "add", "description": "Adds", "parameters": {"type": "object"}}],
//	 "prefill": "So"}
//
// A tool may also have the form {"type": "function", "function": {...}}. An unknown field is an error, since the model
// would not see it.
package chatjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

type conversation struct {
	Messages []json.RawMessage `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	Prefill  string            `json:"prefill"`
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []toolCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	Name       string          `json:"name,omitempty"`
}

type toolCall struct {
	Type     string       `json:"type"`
	ID       *string      `json:"id"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type part struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	Thinking *string `json:"thinking,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type functionTool struct {
	Type     string          `json:"type"`
	Function json.RawMessage `json:"function"`
}

// Read reads a conversation. Its errors name the field.
func Read(data []byte) (renderer.Conversation, error) {
	var c conversation
	if err := strict(data, &c); err != nil {
		return renderer.Conversation{}, err
	}
	if c.Messages == nil {
		return renderer.Conversation{}, errors.New(
			`field messages is missing: give a list, like {"messages": [{"role": "user", "content": "Hi"}]}`)
	}
	out := renderer.Conversation{Messages: make([]chat.Message, len(c.Messages)), Prefill: c.Prefill}
	for i, raw := range c.Messages {
		var err error
		if out.Messages[i], err = ReadMessage(raw); err != nil {
			return renderer.Conversation{}, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	if c.Tools == nil {
		return out, nil
	}
	out.Tools = make([]chat.Tool, len(c.Tools))
	for i, raw := range c.Tools {
		var err error
		if out.Tools[i], err = readTool(raw); err != nil {
			return renderer.Conversation{}, fmt.Errorf("tools[%d]: %w", i, err)
		}
	}
	return out, nil
}

// ReadMessage reads one message.
func ReadMessage(data []byte) (chat.Message, error) {
	var m message
	if err := strict(data, &m); err != nil {
		return chat.Message{}, err
	}
	if m.Role == "" {
		return chat.Message{}, errors.New("role is missing: give system, user, assistant or tool")
	}
	out := chat.Message{Role: m.Role, CallID: m.ToolCallID, Name: m.Name}
	for i, c := range m.ToolCalls {
		if c.Function.Name == "" {
			return chat.Message{}, fmt.Errorf("tool_calls[%d]: function.name is missing", i)
		}
		call := chat.ToolCall{Name: c.Function.Name, Arguments: c.Function.Arguments}
		if c.ID != nil {
			call.ID = *c.ID
		}
		out.Calls = append(out.Calls, call)
	}
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return out, nil
	}
	if json.Unmarshal(m.Content, &out.Content) == nil {
		return out, nil
	}
	var err error
	out.Parts, err = readParts(m.Content)
	return out, err
}

func readParts(data []byte) ([]chat.Part, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, errors.New("content is neither text nor a list of parts")
	}
	out := make([]chat.Part, len(raw))
	for i := range raw {
		var err error
		if out[i], err = readPart(raw[i]); err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
	}
	return out, nil
}

func readPart(data []byte) (chat.Part, error) {
	var p part
	err := strict(data, &p)
	switch {
	case err != nil:
		return chat.Part{}, err
	case p.Type == "text" && p.Text != nil && p.Thinking == nil:
		return chat.Part{Text: *p.Text}, nil
	case p.Type == "thinking" && p.Thinking != nil && p.Text == nil:
		return chat.Part{Text: *p.Thinking, Thinking: true}, nil
	default:
		return chat.Part{},
			fmt.Errorf(`a part of type %q is not one of {"type": "text", "text": ...} and {"type": "thinking", "thinking": ...}`,
				p.Type)
	}
}

func readTool(data []byte) (chat.Tool, error) {
	var wrapped functionTool
	if strict(data, &wrapped) == nil && wrapped.Function != nil {
		data = wrapped.Function
	}
	var t tool
	if err := strict(data, &t); err != nil {
		return chat.Tool{}, err
	}
	if t.Name == "" {
		return chat.Tool{}, errors.New("name is missing")
	}
	return chat.Tool(t), nil
}

// strict reads one JSON value, which may only have the fields of the target.
func strict(data []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(target)
	var mismatch *json.UnmarshalTypeError
	text := ""
	if err != nil {
		text = strings.TrimPrefix(err.Error(), "json: ")
	}
	switch {
	case strings.HasPrefix(text, "unknown field"):
		return fmt.Errorf("%s: it would not be seen by the model; known are %s", text, strings.Join(fieldsOf(target), ", "))
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return fmt.Errorf("field %s is %s where %s is expected", mismatch.Field, mismatch.Value, mismatch.Type)
	case err != nil:
		return errors.New(text)
	case decoder.More():
		return errors.New("there is more than one JSON value in the line")
	}
	return nil
}

// fieldsOf returns the names of the JSON fields of the struct that a target points to.
func fieldsOf(target any) []string {
	kind := reflect.TypeOf(target).Elem()
	names := make([]string, kind.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(kind.Field(i).Tag.Get("json"), ",")
	}
	return names
}

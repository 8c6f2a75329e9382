// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat has the messages and the tools of a conversation, as environments and renderers exchange them.
package chat

import "encoding/json"

// Roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message of a conversation. An environment reads and writes Role, Content, Calls, CallID and Name;
// renderers also use the other fields.
type Message struct {
	// Role is one of the four roles. Some formats accept others.
	Role    string
	Content string
	// Thinking is the reasoning at the beginning of an assistant's message.
	Thinking string
	// Parts hold the message piece by piece, if reasoning and text alternate or have another order. If Parts is not nil,
	// it is the message, and Content and Thinking are ignored.
	Parts []Part
	// Calls are the assistant's calls of tools.
	Calls []ToolCall
	// CallID is the ID of the call that a tool's message answers.
	CallID string
	// Name is the name of the tool whose result a tool's message is. Some formats write it.
	Name string
	// Reply is the number of the policy's reply in its trajectory, from 1, if the message is such a reply. It is 0 for
	// every other message.
	Reply int
	// Sampled are the ids that the policy sampled for this message, stop token included; nil for a message
	// that was not sampled. They answer a prompt that has no prefill.
	Sampled []int32
}

// Part is a piece of a message: text for the reader, or reasoning.
type Part struct {
	Text     string
	Thinking bool
}

// Tool describes a tool that can be called.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON schema; empty if the tool has no parameters. The order of its names is kept.
	Parameters json.RawMessage
}

// ToolCall is a call of a tool as the policy wrote it.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the text of a JSON object.
	Arguments string
}

// LacksObject reports whether the arguments of the call are not a JSON object. No dialect can express such a call.
func (c ToolCall) LacksObject() bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(c.Arguments), &object) != nil || object == nil
}

// IsStructured reports whether the message consists of parts rather than of one text.
func (m Message) IsStructured() bool { return m.Parts != nil || m.Thinking != "" }

// AllParts returns the message piece by piece.
func (m Message) AllParts() []Part {
	switch {
	case m.Parts != nil:
		return m.Parts
	case m.Thinking == "":
		return []Part{{Text: m.Content}}
	case m.Content == "":
		return []Part{{Text: m.Thinking, Thinking: true}}
	default:
		return []Part{{Text: m.Thinking, Thinking: true}, {Text: m.Content}}
	}
}

// WithText returns the message with one text in place of its content.
func (m Message) WithText(text string) Message {
	m.Content, m.Thinking, m.Parts = text, "", nil
	return m
}

// WithParts returns the message with parts in place of its content.
func (m Message) WithParts(parts []Part) Message {
	m.Content, m.Thinking, m.Parts = "", "", parts
	return m
}

// IsEmpty reports whether the message has neither text nor a part.
func (m Message) IsEmpty() bool {
	return !m.IsStructured() && m.Content == "" || m.IsStructured() && len(m.AllParts()) == 0
}

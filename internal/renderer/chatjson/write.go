// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chatjson

import (
	"bytes"
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// endings are the names of the endings.
var endings = map[renderer.Ending]string{
	renderer.Stopped: "stopped", renderer.Truncated: "truncated", renderer.Malformed: "malformed", renderer.Ended: "ended",
}

type parsed struct {
	Message  json.RawMessage `json:"message"`
	Ending   string          `json:"ending"`
	Problem  string          `json:"problem,omitempty"`
	Unparsed []unparsed      `json:"unparsed_tool_calls,omitempty"`
}

type unparsed struct {
	RawText string `json:"raw_text"`
	Error   string `json:"error"`
}

// Write writes a parsed reply. Its message can be read again.
func Write(p renderer.Parsed) ([]byte, error) {
	m, err := WriteMessage(p.Message)
	if err != nil {
		return nil, err
	}
	out := parsed{Message: m, Ending: endings[p.Ending], Problem: p.Problem}
	for _, u := range p.Unparsed {
		out.Unparsed = append(out.Unparsed, unparsed{RawText: u.Text, Error: u.Problem})
	}
	return marshal(out)
}

// WriteMessage writes a message without its sampled ids.
func WriteMessage(m chat.Message) ([]byte, error) {
	content, err := marshal(contentOf(m))
	if err != nil {
		return nil, err
	}
	out := message{Role: m.Role, Content: content, ToolCallID: m.CallID, Name: m.Name}
	for _, c := range m.Calls {
		call := toolCall{Type: "function", Function: functionCall{Name: c.Name, Arguments: c.Arguments}}
		if c.ID != "" {
			call.ID = &c.ID
		}
		out.ToolCalls = append(out.ToolCalls, call)
	}
	return marshal(out)
}

// contentOf returns the content as a text, or as a list of parts.
func contentOf(m chat.Message) any {
	parts := m.Parts
	if parts == nil {
		if m.Thinking == "" {
			return m.Content
		}
		parts = []chat.Part{{Text: m.Thinking, Thinking: true}, {Text: m.Content}}
	}
	out := make([]part, len(parts))
	for i, p := range parts {
		out[i] = part{Type: "text", Text: &p.Text}
		if p.Thinking {
			out[i] = part{Type: "thinking", Thinking: &p.Text}
		}
	}
	return out
}

// marshal writes JSON without escaping HTML, so that <think> stays readable.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/chattemplate"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// Names of variables and fields that transformers gives a template.
const (
	fieldContent = "content"
	endOfText    = "eos_token"
)

// known are the roles whose names count as the template's text: some templates build special tokens with them.
var known = []string{chat.RoleSystem, chat.RoleUser, chat.RoleAssistant, chat.RoleTool}

// written is the output of a template for a conversation.
type written struct {
	text string
	// data are the places that come from messages and tools, in the order of the text. The template wrote all others.
	data []renderer.Extent
}

// fromTemplate reports whether the template wrote a place.
func (w written) fromTemplate(start, end int) bool {
	i, _ := slices.BinarySearchFunc(w.data, start, func(e renderer.Extent, at int) int {
		if e.End <= at {
			return -1
		}
		return 1
	})
	return i == len(w.data) || w.data[i].Begin >= end
}

// unsupported is the failure of a template, which is an ErrUnsupported.
type unsupported struct{ err error }

// Error implements error.
func (e *unsupported) Error() string { return e.err.Error() }

// Unwrap returns the causes.
func (e *unsupported) Unwrap() []error { return []error{e.err, renderer.ErrUnsupported} }

// write renders a conversation. An error is an ErrUnsupported: another try would fail in the same way.
func (r *Renderer) write(conversation renderer.Conversation, opensReply bool) (written, error) {
	messages := make([]any, len(conversation.Messages))
	for i, m := range conversation.Messages {
		fields, err := r.message(m)
		if err != nil {
			return written{}, fmt.Errorf("rendering message %d of role %q: %w", i, m.Role, err)
		}
		messages[i] = fields
	}
	var tools any
	if conversation.Tools != nil {
		list := make([]any, len(conversation.Tools))
		for i, tool := range conversation.Tools {
			function, err := format.Function(tool)
			if err != nil {
				return written{}, err
			}
			list[i] = function
		}
		tools = list
	}
	return r.run(messages, tools, opensReply)
}

func (r *Renderer) run(messages []any, tools any, opensReply bool) (written, error) {
	out, err := r.template.Render(map[string]any{
		"messages": messages, "tools": tools, "documents": nil, "add_generation_prompt": opensReply,
	}, chattemplate.Options{Date: r.config.Date, Tokens: r.config.Names})
	if err != nil {
		return written{}, &unsupported{err}
	}
	var w written
	for _, span := range out.Spans {
		begin := len(w.text)
		w.text += span.Text
		if span.Origin == chattemplate.FromData {
			w.data = append(w.data, renderer.Extent{Begin: begin, End: len(w.text)})
		}
	}
	return w, nil
}

// message returns the fields of a message, as transformers has them.
func (r *Renderer) message(m chat.Message) (*pyjson.Object, error) {
	content, reasoning := m.Content, ""
	if m.IsStructured() {
		parts := m.AllParts()
		content, reasoning = format.TextOf(parts), format.ThinkingOf(parts)
	}
	out := &pyjson.Object{}
	if slices.Contains(known, m.Role) {
		out.Set("role", chattemplate.Fixed(m.Role))
	} else {
		out.Set("role", m.Role)
	}
	switch {
	case reasoning == "":
	case r.traits.ReasoningField != "":
		out.Set(r.traits.ReasoningField, reasoning)
	case r.traits.Reasoning[0] != "":
		content = r.traits.Reasoning[0] + "\n" + reasoning + "\n" + r.traits.Reasoning[1] + "\n\n" + content
	default:
		return nil, fmt.Errorf("the chat template has no reasoning: %w", renderer.ErrUnsupported)
	}
	out.Set(fieldContent, content)
	if len(m.Calls) > 0 {
		calls, err := callList(m.Calls)
		if err != nil {
			return nil, err
		}
		out.Set("tool_calls", calls)
	}
	if m.CallID != "" {
		out.Set("tool_call_id", m.CallID)
	}
	if m.Name != "" {
		out.Set("name", m.Name)
	}
	return out, nil
}

func callList(calls []chat.ToolCall) ([]any, error) {
	list := make([]any, len(calls))
	for i, call := range calls {
		arguments := any(&pyjson.Object{})
		if call.Arguments != "" {
			var err error
			if arguments, err = pyjson.Parse(call.Arguments); err != nil {
				return nil, fmt.Errorf("writing call %d, of %q: %w: %w", i, call.Name, format.ErrArguments, err)
			}
		}
		function := &pyjson.Object{Fields: []pyjson.Field{{Name: "name", Value: call.Name},
			{Name: "arguments", Value: arguments}}}
		fields := &pyjson.Object{}
		if call.ID != "" {
			fields.Set("id", call.ID)
		}
		fields.Set("type", "function")
		fields.Set("function", function)
		list[i] = fields
	}
	return list, nil
}

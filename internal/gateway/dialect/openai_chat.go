// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// chatCompletions decodes a request to chat/completions.
func (d *decoder) chatCompletions(request *Request, top object) {
	messages := top.get("messages")
	if messages.isNull() {
		d.fail(messages.path, "The field messages is required.")
	}
	items := d.list(messages, d.options.Limits.Messages)
	if len(items) == 0 {
		d.fail(messages.path, "The array is empty. Send at least one message.")
	}
	for _, item := range items {
		d.chatMessage(request, d.object(item))
	}
	if tools := top.get("tools"); !tools.isNull() {
		for _, item := range d.list(tools, d.options.Limits.Tools) {
			d.chatTool(request, d.object(item))
		}
	}
	request.Stop = d.stops(top.get("stop"))
	request.MaxTokens = d.integer(top, "max_completion_tokens", 1)
	if request.MaxTokens == nil {
		request.MaxTokens = d.integer(top, "max_tokens", 1)
	}
	d.choices(request, top, 1)
	d.stream(request, top)
	if d.boolean(top, "logprobs") {
		request.Logprobs = new(int)
		if alternatives := d.integer(top, "top_logprobs", 0); alternatives != nil {
			request.Logprobs = alternatives
		}
		d.alternatives(request, top, "top_logprobs")
	}
}

// alternatives reports as unsupported that a request asks for alternatives to the sampled tokens, if
// Options.NoAlternatives is set.
func (d *decoder) alternatives(request *Request, top object, name string) {
	if d.err == nil && d.options.NoAlternatives && request.Logprobs != nil && *request.Logprobs > 0 {
		d.unsupported(name, top.get(name).path)
	}
}

// choices decodes the number of choices for each prompt.
func (d *decoder) choices(request *Request, top object, prompts int) {
	if n := d.integer(top, "n", 1); n != nil {
		request.N = *n
	}
	if d.err == nil && request.N > d.options.Limits.Choices/max(prompts, 1) {
		d.fail(top.get("n").path, "The request asks for %d choices of %d prompts. The limit is %d choices.",
			request.N, prompts, d.options.Limits.Choices)
	}
}

// stream decodes whether the reply is a stream of events.
func (d *decoder) stream(request *Request, top object) {
	request.Stream = d.boolean(top, "stream")
	options := top.get("stream_options")
	if options.isNull() {
		return
	}
	o := d.object(options)
	d.readOptions(o, map[string]option{"include_usage": honoured, "include_obfuscation": accepted})
	request.IncludeUsage = d.boolean(o, "include_usage")
}

// chatTool decodes a tool.
func (d *decoder) chatTool(request *Request, o object) {
	if name := d.required(o, "type"); d.err == nil && name != "function" {
		d.fail(o.get("type").path, "Tools of the type %s are not supported. Supported: function.", quote(name))
	}
	d.readOptions(o, map[string]option{"type": honoured, "function": honoured})
	function := d.object(o.get("function"))
	d.readOptions(function, functionFields)
	d.addTool(request, d.tool(function, "parameters"), function)
}

// functionFields are the fields of a function that a model may call.
var functionFields = map[string]option{
	"name": honoured, "description": honoured, "parameters": honoured, "type": honoured,
	"strict": unsupported.except("false"), "defer_loading": unsupported.except("false"),
	"async": unsupported.except("false"), "allowed_callers": unsupported.except(`["direct"]`),
	"output_schema": unsupported,
}

// chatFields are the fields of messages, by role. Clients add some of them when they send a reply back.
var chatFields = map[string]map[string]option{
	"system":    {"role": honoured, "content": honoured, "name": unsupported},
	"developer": {"role": honoured, "content": honoured, "name": unsupported},
	"user":      {"role": honoured, "content": honoured, "name": unsupported},
	"tool":      {"role": honoured, "content": honoured, "tool_call_id": honoured, "name": accepted},
	"assistant": {
		"role": honoured, "content": honoured, "reasoning_content": honoured, "reasoning": honoured,
		"tool_calls": honoured, "refusal": honoured, "name": unsupported, "annotations": accepted, "parsed": accepted,
		"audio": refused, "function_call": refused,
	},
}

// chatMessage decodes a message.
func (d *decoder) chatMessage(request *Request, o object) {
	role := d.required(o, "role")
	known, ok := chatFields[role]
	if !ok {
		d.fail(o.get("role").path, "The role %s is not supported. Supported: system, developer, user, assistant, tool.",
			quote(role))
		return
	}
	d.readOptions(o, known)
	switch role {
	case "assistant":
		request.Messages = append(request.Messages, d.chatAssistant(o))
	case "tool":
		id := d.required(o, "tool_call_id")
		d.addResult(request, id, d.textOf(o.get("content"), "text"), o.get("tool_call_id").path)
	case "user":
		request.Messages = append(request.Messages,
			chat.Message{Role: chat.RoleUser, Content: d.textOf(o.get("content"), "text")})
	default:
		request.Messages = append(request.Messages,
			chat.Message{Role: chat.RoleSystem, Content: d.textOf(o.get("content"), "text")})
	}
}

// chatAssistant decodes an assistant's message.
func (d *decoder) chatAssistant(o object) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Thinking: d.optional(o, "reasoning_content")}
	if m.Thinking == "" {
		m.Thinking = d.optional(o, "reasoning")
	}
	switch content := o.get("content"); {
	case content.isNull():
		m.Content = d.optional(o, "refusal")
	case content.raw[0] == '"':
		m.Content = d.string(content)
	default:
		m.Content = d.refusable(content, "text")
	}
	if calls := o.get("tool_calls"); !calls.isNull() {
		for _, item := range d.list(calls, d.options.Limits.Calls) {
			d.chatCall(&m, d.object(item))
		}
	}
	if d.err == nil && m.IsEmpty() && len(m.Calls) == 0 && o.get("content").isNull() {
		d.fail(o.get("content").path, "An assistant's message needs content or tool_calls.")
	}
	return m
}

// refusable returns the text of parts that are of the given type or refusals.
func (d *decoder) refusable(content node, textType string) string {
	var text string
	for _, item := range d.list(content, d.options.Limits.Parts) {
		part := d.object(item)
		if d.partType(part, []string{textType, "refusal"}) == "refusal" {
			text += d.string(part.get("refusal"))
		} else {
			text += d.string(part.get("text"))
		}
	}
	return text
}

// chatCall decodes a call of a tool.
func (d *decoder) chatCall(m *chat.Message, o object) {
	if name := d.optional(o, "type"); d.err == nil && name != "function" && name != "" {
		d.fail(o.get("type").path, "Calls of the type %s are not supported. Supported: function.", quote(name))
	}
	d.readOptions(o, map[string]option{"id": honoured, "type": honoured, "function": honoured, "index": accepted})
	function := d.object(o.get("function"))
	d.readOptions(function, map[string]option{"name": honoured, "arguments": honoured, "parsed_arguments": accepted})
	arguments := function.get("arguments")
	d.addCall(m, chat.ToolCall{
		ID: d.required(o, "id"), Name: d.required(function, "name"),
		Arguments: d.jsonObject(d.string(arguments), arguments.path),
	}, o.get("id").path)
}

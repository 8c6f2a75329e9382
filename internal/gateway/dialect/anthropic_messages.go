// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// anthropicMessages decodes a request to messages or to count_tokens.
func (d *decoder) anthropicMessages(request *Request, top object) {
	if request.Endpoint == Messages {
		if limit := top.get("max_tokens"); limit.isNull() {
			d.fail(limit.path, "Field required")
		}
		request.MaxTokens = d.integer(top, "max_tokens", 1)
		request.Stop = d.stops(top.get("stop_sequences"))
		request.Stream = d.boolean(top, "stream")
	}
	if system := top.get("system"); !system.isNull() {
		if text := d.textOf(system, "text"); text != "" {
			request.Messages = append(request.Messages, chat.Message{Role: chat.RoleSystem, Content: text})
		}
	}
	if tools := top.get("tools"); !tools.isNull() {
		for _, item := range d.list(tools, d.options.Limits.Tools) {
			d.anthropicTool(request, d.object(item))
		}
	}
	messages := top.get("messages")
	if messages.isNull() {
		d.fail(messages.path, "Field required")
	}
	items := d.list(messages, d.options.Limits.Messages)
	if len(items) == 0 {
		d.fail(messages.path, "The array is empty. Send at least one message.")
	}
	for _, item := range items {
		d.anthropicMessage(request, d.object(item))
	}
}

// anthropicTool decodes a tool.
func (d *decoder) anthropicTool(request *Request, o object) {
	if name := d.optional(o, "type"); d.err == nil && name != "" && name != "custom" {
		d.fail(o.get("type").path, "Tools of the type %s are not supported. Supported: custom.", quote(name))
		return
	}
	d.readOptions(o, map[string]option{
		"type": honoured, "name": honoured, "description": honoured, "input_schema": honoured,
		"cache_control": accepted, "eager_input_streaming": accepted, "strict": unsupported.except("false"),
		"defer_loading": unsupported.except("false"), "input_examples": unsupported.except("[]"),
		"allowed_callers": unsupported.except(`["direct"]`),
	})
	if schema := o.get("input_schema"); schema.isNull() {
		d.fail(schema.path, "Field required")
	}
	d.addTool(request, d.tool(o, "input_schema"), o)
}

// anthropicMessage decodes a message. It can become several messages, since results of tools and the texts between
// them are messages of their own.
func (d *decoder) anthropicMessage(request *Request, o object) {
	d.readOptions(o, map[string]option{"role": honoured, "content": honoured})
	content := o.get("content")
	switch role := d.required(o, "role"); role {
	case "system":
		request.Messages = append(request.Messages,
			chat.Message{Role: chat.RoleSystem, Content: d.textOf(content, "text")})
	case "user":
		d.userBlocks(request, content)
	case "assistant":
		request.Messages = append(request.Messages, d.assistantBlocks(content))
	default:
		d.fail(o.get("role").path, "The role %s is not supported. Supported: user, assistant, system.", quote(role))
	}
}

// userBlocks decodes the content of a user's message. Adjacent text blocks become one message.
func (d *decoder) userBlocks(request *Request, content node) {
	if content.isNull() || content.raw[0] == '"' {
		request.Messages = append(request.Messages,
			chat.Message{Role: chat.RoleUser, Content: d.textOf(content)})
		return
	}
	blocks := d.list(content, d.options.Limits.Parts)
	if len(blocks) == 0 {
		d.fail(content.path, "The array is empty. Send at least one block.")
	}
	joins := false
	for _, block := range blocks {
		o := d.object(block)
		switch name := d.required(o, "type"); name {
		case "text":
			d.readOptions(o, textPart)
			text := d.string(o.get("text"))
			if joins {
				request.Messages[len(request.Messages)-1].Content += text
			} else {
				request.Messages = append(request.Messages, chat.Message{Role: chat.RoleUser, Content: text})
			}
			joins = true
		case "tool_result":
			d.resultBlock(request, o)
			joins = false
		default:
			d.fail(o.get("type").path, "Blocks of the type %s are not supported in a user's message. "+
				"Supported: text, tool_result.", quote(name))
		}
		if d.err != nil {
			return
		}
	}
}

// resultBlock decodes the result of a tool.
func (d *decoder) resultBlock(request *Request, o object) {
	d.readOptions(o, map[string]option{
		"type": honoured, "tool_use_id": honoured, "content": honoured, "cache_control": accepted,
		"is_error": unsupported.except("false"), "toolset_name": unsupported,
	})
	text := ""
	if content := o.get("content"); !content.isNull() {
		text = d.textOf(content, "text")
	}
	d.addResult(request, d.required(o, "tool_use_id"), text, o.get("tool_use_id").path)
}

// assistantBlocks decodes the content of an assistant's message.
func (d *decoder) assistantBlocks(content node) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant}
	if content.isNull() || content.raw[0] == '"' {
		m.Content = d.textOf(content)
		return m
	}
	parts := []chat.Part{}
	for _, block := range d.list(content, d.options.Limits.Parts) {
		o := d.object(block)
		switch name := d.required(o, "type"); name {
		case "text":
			d.readOptions(o, textPart)
			parts = append(parts, chat.Part{Text: d.string(o.get("text"))})
		case "thinking":
			parts = append(parts, chat.Part{Text: d.thinkingBlock(o), Thinking: true})
		case "tool_use":
			d.useBlock(&m, o)
		default:
			d.fail(o.get("type").path, "Blocks of the type %s are not supported in an assistant's message. "+
				"Supported: text, thinking, tool_use.", quote(name))
		}
		if d.err != nil {
			return m
		}
	}
	m.Parts = parts
	return Normal(m)
}

// thinkingBlock returns the reasoning of a block. The block's signature must match the reasoning.
func (d *decoder) thinkingBlock(o object) string {
	d.readOptions(o, map[string]option{
		"type": honoured, "thinking": honoured, "signature": honoured, "cache_control": accepted,
	})
	text, signature := d.string(o.get("thinking")), d.required(o, "signature")
	if d.err == nil && (d.options.Verify == nil || !d.options.Verify(text, signature)) {
		d.fail(o.get("signature").path, "Invalid `signature` in `thinking` block")
	}
	return text
}

// useBlock decodes a call of a tool.
func (d *decoder) useBlock(m *chat.Message, o object) {
	d.readOptions(o, map[string]option{
		"type": honoured, "id": honoured, "name": honoured, "input": honoured, "cache_control": accepted,
		"caller": unsupported.except(`{"type":"direct"}`), "toolset_name": unsupported,
	})
	input := o.get("input")
	d.object(input)
	var compact bytes.Buffer
	if d.err == nil && json.Compact(&compact, input.raw) != nil {
		d.fail(input.path, "Expected an object, but got %s.", kind(input))
	}
	d.addCall(m, chat.ToolCall{
		ID: d.required(o, "id"), Name: d.required(o, "name"), Arguments: compact.String(),
	}, o.get("id").path)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// responses decodes a request to responses.
func (d *decoder) responses(request *Request, top object) {
	request.Instructions = d.optional(top, "instructions")
	request.PreviousID = d.optional(top, "previous_response_id")
	request.MaxTokens = d.integer(top, "max_output_tokens", 1)
	request.Stream = d.boolean(top, "stream")
	if tools := top.get("tools"); !tools.isNull() {
		for _, item := range d.list(tools, d.options.Limits.Tools) {
			d.responseTool(request, d.object(item))
		}
	}
	input := top.get("input")
	switch {
	case input.isNull():
		d.fail(input.path, "The field input is required.")
	case input.raw[0] == '"':
		request.Messages = []chat.Message{{Role: chat.RoleUser, Content: d.string(input)}}
	default:
		d.items(request, input)
	}
}

// responseTool decodes a tool.
func (d *decoder) responseTool(request *Request, o object) {
	if name := d.required(o, "type"); d.err == nil && name != "function" {
		d.fail(o.get("type").path, "Tools of the type %s are not supported. Supported: function.", quote(name))
		return
	}
	d.readOptions(o, functionFields)
	d.addTool(request, d.tool(o, "parameters"), o)
}

// turn collects the items of one assistant's message.
type turn struct {
	parts []chat.Part
	calls chat.Message
	open  bool
}

// close adds the message of the collected items to the request.
func (t *turn) close(request *Request) {
	if t.open {
		m := Normal(chat.Message{Role: chat.RoleAssistant, Parts: append([]chat.Part{}, t.parts...)})
		m.Calls = t.calls.Calls
		request.Messages = append(request.Messages, m)
	}
	*t = turn{}
}

// items decodes the items of the input. Adjacent output items become one assistant's message.
func (d *decoder) items(request *Request, input node) {
	items := d.list(input, d.options.Limits.Messages)
	if len(items) == 0 {
		d.fail(input.path, "The array is empty. Send at least one item.")
	}
	var assistant turn
	for _, item := range items {
		o := d.object(item)
		name := d.optional(o, "type")
		if name == "" {
			name = "message"
		}
		known, ok := itemFields[name]
		if !ok {
			d.fail(o.get("type").path, "Items of the type %s are not supported. Supported: message, function_call, "+
				"function_call_output, reasoning.", quote(name))
		}
		d.readOptions(o, known)
		if d.err != nil {
			return
		}
		switch name {
		case "message":
			d.messageItem(request, &assistant, o)
		case "reasoning":
			assistant.open = true
			assistant.parts = append(assistant.parts, chat.Part{Text: d.reasoningItem(o), Thinking: true})
		case "function_call":
			assistant.open = true
			d.callItem(&assistant.calls, o)
		case "function_call_output":
			assistant.close(request)
			d.resultItem(request, o)
		}
	}
	assistant.close(request)
}

// itemFields are the fields of items, by type.
var itemFields = map[string]map[string]option{
	"message": {
		"type": honoured, "role": honoured, "content": honoured, "id": accepted, "status": accepted, "phase": accepted,
	},
	"reasoning": {
		"type": honoured, "summary": honoured, "content": honoured, "id": accepted, "status": accepted,
		"encrypted_content": unsupported,
	},
	"function_call": {
		"type": honoured, "call_id": honoured, "name": honoured, "arguments": honoured, "id": accepted,
		"status": accepted, "parsed_arguments": accepted, "caller": unsupported.except(`{"type":"direct"}`),
		"namespace": unsupported, "async": unsupported.except("false"),
	},
	"function_call_output": {
		"type": honoured, "call_id": honoured, "output": honoured, "id": accepted, "status": accepted,
		"caller": unsupported.except(`{"type":"direct"}`),
	},
}

// messageItem decodes an item with a message.
func (d *decoder) messageItem(request *Request, assistant *turn, o object) {
	role, content := d.required(o, "role"), o.get("content")
	switch role {
	case "assistant":
		if o.get("id").isNull() {
			assistant.close(request)
		}
		assistant.open = true
		text := ""
		if !content.isNull() && content.raw[0] == '"' {
			text = d.string(content)
		} else {
			text = d.refusable(content, "output_text")
		}
		assistant.parts = append(assistant.parts, chat.Part{Text: text})
	case "user":
		assistant.close(request)
		request.Messages = append(request.Messages,
			chat.Message{Role: chat.RoleUser, Content: d.textOf(content, "input_text")})
	case "system", "developer":
		assistant.close(request)
		request.Messages = append(request.Messages,
			chat.Message{Role: chat.RoleSystem, Content: d.textOf(content, "input_text")})
	default:
		d.fail(o.get("role").path, "The role %s is not supported. Supported: system, developer, user, assistant.",
			quote(role))
	}
}

// reasoningItem returns the reasoning of an item: its content, or its summary if it has no content.
func (d *decoder) reasoningItem(o object) string {
	text := d.reasoningTexts(o.get("content"), "reasoning_text")
	if text == "" {
		text = d.reasoningTexts(o.get("summary"), "summary_text")
	}
	return text
}

// reasoningTexts returns the text of parts with reasoning.
func (d *decoder) reasoningTexts(n node, partType string) string {
	var text strings.Builder
	if n.isNull() {
		return ""
	}
	for _, item := range d.list(n, d.options.Limits.Parts) {
		part := d.object(item)
		d.partType(part, []string{partType})
		text.WriteString(d.string(part.get("text")))
	}
	return text.String()
}

// callItem decodes an item with a call of a tool.
func (d *decoder) callItem(m *chat.Message, o object) {
	arguments := o.get("arguments")
	d.addCall(m, chat.ToolCall{
		ID: d.required(o, "call_id"), Name: d.required(o, "name"),
		Arguments: d.jsonObject(d.string(arguments), arguments.path),
	}, o.get("call_id").path)
}

// resultItem decodes an item with the result of a tool.
func (d *decoder) resultItem(request *Request, o object) {
	output := o.get("output")
	if output.isNull() {
		d.fail(output.path, "The field output is required.")
	}
	id := d.required(o, "call_id")
	d.addResult(request, id, d.textOf(output, "input_text"), o.get("call_id").path)
}

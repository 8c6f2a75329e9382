// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Normal returns an assistant's message in the form in which requests and replies are compared: neighbouring parts of
// one kind are joined, empty parts are dropped, and a message of at most one reasoning followed by one text has no
// Parts.
func Normal(m chat.Message) chat.Message {
	var parts []chat.Part
	for _, part := range m.AllParts() {
		switch last := len(parts) - 1; {
		case part.Text == "":
		case last >= 0 && parts[last].Thinking == part.Thinking:
			parts[last].Text += part.Text
		default:
			parts = append(parts, part)
		}
	}
	m.Content, m.Thinking, m.Parts = "", "", nil
	switch {
	case len(parts) == 1 && !parts[0].Thinking:
		m.Content = parts[0].Text
	case len(parts) == 1:
		m.Thinking = parts[0].Text
	case len(parts) == 2 && parts[0].Thinking:
		m.Thinking, m.Content = parts[0].Text, parts[1].Text
	case len(parts) > 0:
		m.Parts = parts
	}
	return m
}

// texts returns the reasoning and the text of a message, for the dialects that have one of each.
func texts(m chat.Message) (thinking, text string) {
	var thoughts, words strings.Builder
	for _, part := range m.AllParts() {
		if part.Thinking {
			thoughts.WriteString(part.Text)
		} else {
			words.WriteString(part.Text)
		}
	}
	return thoughts.String(), words.String()
}

// textOf returns the text of a content, which is a string or an array of text parts of the given types. It joins the
// texts of the parts without a separator.
func (d *decoder) textOf(content node, types ...string) string {
	if content.isNull() {
		d.fail(content.path, "The field content is required.")
		return ""
	}
	if content.raw[0] == '"' {
		return d.string(content)
	}
	var text strings.Builder
	for _, item := range d.list(content, d.options.Limits.Parts) {
		part := d.object(item)
		d.partType(part, types)
		text.WriteString(d.string(part.get("text")))
	}
	return text.String()
}

// partType returns the type of a part, which must be one of the given types.
func (d *decoder) partType(part object, types []string) string {
	name := d.required(part, "type")
	if d.err == nil && !slices.Contains(types, name) {
		d.fail(part.get("type").path, "Parts of the type %s are not supported. Supported: %s.", quote(name),
			strings.Join(types, ", "))
	}
	d.readOptions(part, textPart)
	return name
}

// textPart are the fields of a text part, in all dialects. Some are fields that the parsers of clients add.
var textPart = map[string]option{
	"type": honoured, "text": honoured, "refusal": honoured, "cache_control": accepted, "annotations": accepted,
	"logprobs": accepted, "parsed": accepted, "parsed_output": accepted, "prompt_cache_breakpoint": accepted,
	"citations": unsupported.except("[]"),
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// tool returns a tool from an object with a name, a description and a JSON schema.
func (d *decoder) tool(o object, schema string) chat.Tool {
	tool := chat.Tool{Name: d.required(o, "name"), Description: d.optional(o, "description")}
	if d.err == nil && !toolName.MatchString(tool.Name) {
		d.fail(o.get("name").path, "The name %s does not match %s.", quote(tool.Name), toolName)
	}
	if parameters := o.get(schema); !parameters.isNull() {
		d.object(parameters)
		tool.Parameters = parameters.raw
	}
	return tool
}

// addTool adds a tool to a request. Its name must be new.
func (d *decoder) addTool(request *Request, tool chat.Tool, o object) {
	for _, other := range request.Tools {
		if other.Name == tool.Name {
			d.fail(o.get("name").path, "The name %s is the name of two tools.", quote(tool.Name))
			return
		}
	}
	request.Tools = append(request.Tools, tool)
}

// stops returns the texts at which a reply ends: a string, or an array of strings.
func (d *decoder) stops(n node) []string {
	var stops []string
	switch {
	case n.isNull():
	case n.raw[0] == '"':
		stops = []string{d.string(n)}
	default:
		for _, item := range d.list(n, d.options.Limits.Stops) {
			stops = append(stops, d.string(item))
		}
	}
	if slices.Contains(stops, "") {
		d.fail(n.path, "A stop text is empty.")
	}
	return stops
}

// addResult adds the result of a tool, whose ID is at a path.
func (d *decoder) addResult(request *Request, id, text string, p path) {
	if d.results == nil {
		d.results = map[int]path{}
	}
	d.results[len(request.Messages)] = p
	request.Messages = append(request.Messages, chat.Message{Role: chat.RoleTool, Content: text, CallID: id})
}

// addCall adds a call to an assistant's message. Its ID must be new in the message.
func (d *decoder) addCall(m *chat.Message, call chat.ToolCall, p path) {
	if len(m.Calls) >= d.options.Limits.Calls {
		d.fail(p, "The message has more than %d calls.", d.options.Limits.Calls)
		return
	}
	for _, other := range m.Calls {
		if other.ID == call.ID {
			d.fail(p, "The ID %s is the ID of two calls in one message.", quote(call.ID))
			return
		}
	}
	m.Calls = append(m.Calls, call)
}

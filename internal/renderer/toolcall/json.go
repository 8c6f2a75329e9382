// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolcall has calls of tools as text between tags: how they are declared, written and read. It has the calls
// of Qwen and Nemotron, which any other format can also carry as text.
package toolcall

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// The tags of calls and of results.
const (
	Open        = "<tool_call>"
	Close       = "</tool_call>"
	ResultOpen  = "<tool_response>"
	ResultClose = "</tool_response>"
)

// Reader reads the text between the tags of a call that is not JSON. problem is the problem of the JSON. A Reader
// returns the problem of the call, or "".
type Reader func(inner, problem string) (chat.ToolCall, string)

// Read reads calls, including their tags. The function other reads a call that is not JSON; nil reads none. Read
// returns calls in JSON before the others, as the reference does.
func Read(raw []string, other Reader) (calls []chat.ToolCall, unparsed []renderer.UnparsedCall) {
	var converted []chat.ToolCall
	for _, text := range raw {
		inner := strings.TrimSuffix(strings.TrimPrefix(text, Open), Close)
		call, problem := jsonCall(inner)
		if problem == "" {
			calls = append(calls, call)
			continue
		}
		if other != nil {
			if call, problem = other(inner, problem); problem == "" {
				converted = append(converted, call)
				continue
			}
		}
		unparsed = append(unparsed, renderer.UnparsedCall{Text: text, Problem: problem})
	}
	return append(calls, converted...), unparsed
}

// jsonCall reads {"name": ..., "arguments": {...}}. It writes the arguments again, as the reference does.
func jsonCall(text string) (call chat.ToolCall, problem string) {
	value, err := pyjson.Parse(pyjson.Strip(text))
	if err != nil {
		return chat.ToolCall{}, "Invalid JSON: " + err.Error()
	}
	object, ok := value.(*pyjson.Object)
	if !ok {
		return chat.ToolCall{}, "Tool call is not a JSON object"
	}
	name, _ := object.Get("name")
	arguments, _ := object.Get("arguments")
	id, _ := object.Get("id")
	call.ID, _ = id.(string)
	if call.Name, ok = name.(string); !ok {
		return chat.ToolCall{}, "Missing or invalid 'name' field"
	}
	if _, ok := arguments.(*pyjson.Object); !ok {
		return chat.ToolCall{}, "Missing or invalid 'arguments' field"
	}
	call.Name, call.ID = pyjson.Text(call.Name), pyjson.Text(call.ID)
	call.Arguments = pyjson.JSON(arguments)
	return call, ""
}

// WriteJSON writes calls as JSON between tags, one a line.
func WriteJSON(calls []chat.ToolCall) (string, error) {
	lines := make([]string, len(calls))
	for i, call := range calls {
		arguments, err := pyjson.Parse(call.Arguments)
		if err != nil {
			return "", fmt.Errorf("writing call %d, of %q: %w: %w", i, call.Name, format.ErrArguments, err)
		}
		payload := &pyjson.Object{Fields: []pyjson.Field{{Name: "name", Value: call.Name},
			{Name: "arguments", Value: arguments}}}
		lines[i] = Open + "\n" + pyjson.JSON(payload) + "\n" + Close
	}
	return strings.Join(lines, "\n"), nil
}

// DeclareJSON adds the tools to the text of the system, for calls in JSON.
func DeclareJSON(system string, tools []chat.Tool) (string, error) {
	text := ""
	if len(tools) > 0 {
		lines, err := format.EachTool(tools, "\n", format.AsJSON(format.Function))
		if err != nil {
			return "", err
		}
		text = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
			"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n" + lines + "\n</tools>\n\n" +
			"For each function call, return a json object with function name and arguments within <tool_call></tool_call> " +
			"XML tags:\n" +
			"<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
	}
	if system == "" {
		return text, nil
	}
	return system + "\n\n" + text, nil
}

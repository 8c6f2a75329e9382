// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// event is a server-sent event.
type event struct {
	name string
	data []byte
}

// parse parses events as the specification of server-sent events says, as far as the codec uses it.
func parse(text []byte) ([]event, error) {
	var events []event
	for block := range bytes.SplitSeq(text, []byte("\n\n")) {
		var e event
		for line := range bytes.SplitSeq(block, []byte("\n")) {
			name, value, _ := bytes.Cut(line, []byte(": "))
			switch string(name) {
			case "event":
				e.name = string(value)
			case "data":
				e.data = value
			case "":
			default:
				return nil, fmt.Errorf("line %q", line)
			}
		}
		if e.data != nil {
			events = append(events, e)
		}
	}
	return events, nil
}

// piece has the fields of all events that the test joins.
type piece struct {
	Type    string
	Choices []struct {
		Delta struct {
			Content          *string
			ReasoningContent string `json:"reasoning_content"`
			ToolCalls        []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	Response       json.RawMessage
	SequenceNumber int `json:"sequence_number"`
	OutputIndex    int `json:"output_index"`
	Item           map[string]any
	Index          int
	ContentBlock   map[string]any  `json:"content_block"`
	Delta          json.RawMessage // a string for responses, an object for messages
}

// join makes the body of a reply from the pieces in its events alone.
func join(endpoint Endpoint, text []byte) ([]byte, error) {
	events, err := parse(text)
	if err != nil {
		return nil, err
	}
	var pieces []piece
	for i, e := range events {
		if string(e.data) == "[DONE]" && i == len(events)-1 {
			break
		}
		var p piece
		if err := json.Unmarshal(e.data, &p); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		if e.name != p.Type {
			return nil, fmt.Errorf("event %d: its name is %q and its type %q", i, e.name, p.Type)
		}
		pieces = append(pieces, p)
	}
	switch endpoint {
	case ChatCompletions:
		return joinChat(pieces)
	case Responses:
		return joinResponse(pieces)
	default:
		return joinMessage(pieces)
	}
}

func joinChat(pieces []piece) ([]byte, error) {
	var content *string
	reasoning, calls := "", []map[string]any{}
	for _, p := range pieces {
		delta := p.Choices[0].Delta
		reasoning += delta.ReasoningContent
		if delta.Content != nil {
			if content == nil {
				content = new(string)
			}
			*content += *delta.Content
		}
		for _, call := range delta.ToolCalls {
			if call.ID != "" {
				function := map[string]any{"name": call.Function.Name, "arguments": ""}
				calls = append(calls, map[string]any{"id": call.ID, "type": "function", "function": function})
			}
			if call.Index != len(calls)-1 {
				return nil, fmt.Errorf("index %d of call %d", call.Index, len(calls)-1)
			}
			function := calls[call.Index]["function"].(map[string]any)
			function["arguments"] = function["arguments"].(string) + call.Function.Arguments
		}
	}
	message := map[string]any{"role": "assistant", "content": content, "reasoning_content": reasoning}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return json.Marshal(map[string]any{"choices": []any{map[string]any{"message": message}}})
}

func joinResponse(pieces []piece) ([]byte, error) {
	var items []map[string]any
	for i, p := range pieces {
		if p.SequenceNumber != i {
			return nil, fmt.Errorf("event %d has the number %d", i, p.SequenceNumber)
		}
		switch {
		case p.Type == "response.output_item.added":
			items = append(items, p.Item)
		case p.Type == "response.content_part.added":
			kind := map[any]string{"reasoning": "reasoning_text", "message": "output_text"}[items[p.OutputIndex]["type"]]
			items[p.OutputIndex]["content"] = []any{map[string]any{"type": kind, "text": ""}}
		case strings.HasSuffix(p.Type, ".delta"):
			var more string
			if err := json.Unmarshal(p.Delta, &more); err != nil {
				return nil, err
			}
			if arguments, ok := items[p.OutputIndex]["arguments"].(string); ok {
				items[p.OutputIndex]["arguments"] = arguments + more
				continue
			}
			part := items[p.OutputIndex]["content"].([]any)[0].(map[string]any)
			part["text"] = part["text"].(string) + more
		}
	}
	if last := pieces[len(pieces)-1].Type; last != "response.completed" {
		return nil, fmt.Errorf("the last event is %s", last)
	}
	return json.Marshal(map[string]any{"output": items})
}

func joinMessage(pieces []piece) ([]byte, error) {
	var blocks []map[string]any
	input := map[int]string{}
	for _, p := range pieces {
		switch p.Type {
		case "content_block_start":
			blocks = append(blocks, p.ContentBlock)
		case "content_block_delta":
			var delta map[string]string
			if err := json.Unmarshal(p.Delta, &delta); err != nil {
				return nil, err
			}
			input[p.Index] += delta["partial_json"]
			for name, value := range delta {
				if name != "type" && name != "partial_json" {
					blocks[p.Index][name] = blocks[p.Index][name].(string) + value
				}
			}
		case "content_block_stop":
			if blocks[p.Index]["type"] == "tool_use" {
				blocks[p.Index]["input"] = json.RawMessage(input[p.Index])
			}
		}
	}
	if pieces[0].Type != "message_start" || pieces[len(pieces)-1].Type != "message_stop" {
		return nil, errors.New("the first or the last event is another one")
	}
	return json.Marshal(map[string]any{"content": blocks})
}

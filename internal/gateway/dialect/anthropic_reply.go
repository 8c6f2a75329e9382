// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// message is a reply of the endpoint messages.
type message struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []any          `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        anthropicUsage `json:"usage"`
}

type anthropicUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type useBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// anthropic returns the usage; tokens that were read from a cache are not input tokens.
func (u Usage) anthropic() anthropicUsage {
	return anthropicUsage{
		InputTokens: u.Prompt - u.Cached, CacheReadInputTokens: u.Cached, OutputTokens: u.Completion,
	}
}

// anthropic returns Anthropic's word for the end of a reply.
func (s StopReason) anthropic() string {
	switch s {
	case StopLength:
		return "max_tokens"
	case StopContext:
		return "model_context_window_exceeded"
	case StopSequence:
		return "stop_sequence"
	case StopCalls:
		return "tool_use"
	default:
		return "end_turn"
	}
}

// messageOf returns the reply without its content and its end.
func messageOf(reply *Reply) message {
	return message{
		ID: reply.ID, Type: "message", Role: chat.RoleAssistant, Model: reply.Model, Content: []any{},
		Usage: reply.Usage.anthropic(),
	}
}

// messageBody returns the whole reply.
func messageBody(reply *Reply) message {
	m, choice := messageOf(reply), reply.Choices[0]
	for _, part := range Normal(choice.Message).AllParts() {
		switch {
		case part.Text == "":
		case part.Thinking:
			m.Content = append(m.Content, thinkingBlock{"thinking", part.Text, reply.Sign(part.Text)})
		default:
			m.Content = append(m.Content, textBlock{"text", part.Text})
		}
	}
	for _, call := range choice.Message.Calls {
		m.Content = append(m.Content, useBlock{"tool_use", call.ID, call.Name, json.RawMessage(call.Arguments)})
	}
	word := choice.Stop.anthropic()
	m.StopReason = &word
	if choice.Stop == StopSequence {
		m.StopSequence = &choice.StopText
	}
	return m
}

// blockDelta is a piece of a block.
type blockDelta struct {
	Type        string  `json:"type"`
	Text        *string `json:"text,omitempty"`
	Thinking    *string `json:"thinking,omitempty"`
	Signature   *string `json:"signature,omitempty"`
	PartialJSON *string `json:"partial_json,omitempty"`
}

// messageStream writes the reply as events: the start of the message; the start, pieces and end of each block; and the
// end of the message.
func messageStream(w *writer, reply *Reply) {
	whole, started := messageBody(reply), messageOf(reply)
	started.Usage.OutputTokens = 0
	w.event("message_start", map[string]any{"type": "message_start", "message": started})
	w.text.Write(KeepAlive(Anthropic))
	w.sent = reply.Choices[0].Sent
	for i, block := range whole.Content {
		open := reply.Open && i == len(whole.Content)-1
		begun, deltas := blockDeltas(w, block, open)
		w.event("content_block_start", map[string]any{"type": "content_block_start", "index": i, "content_block": begun})
		for _, delta := range deltas {
			w.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": i, "delta": delta})
		}
		if open {
			return
		}
		w.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": i})
	}
	if reply.Open {
		return
	}
	w.event("message_delta", map[string]any{
		"type":  "message_delta",
		"delta": map[string]any{"stop_reason": whole.StopReason, "stop_sequence": whole.StopSequence},
		"usage": whole.Usage,
	})
	w.event("message_stop", map[string]any{"type": "message_stop"})
}

// blockDeltas returns the empty block with which a stream begins the block, and the pieces of the block. An open block
// has no signature yet.
func blockDeltas(w *writer, block any, open bool) (any, []blockDelta) {
	var deltas []blockDelta
	switch b := block.(type) {
	case textBlock:
		for _, piece := range w.pieces(b.Text) {
			deltas = append(deltas, blockDelta{Type: "text_delta", Text: &piece})
		}
		return textBlock{Type: b.Type}, deltas
	case thinkingBlock:
		for _, piece := range w.pieces(b.Thinking) {
			deltas = append(deltas, blockDelta{Type: "thinking_delta", Thinking: &piece})
		}
		if !open {
			deltas = append(deltas, blockDelta{Type: "signature_delta", Signature: &b.Signature})
		}
		return thinkingBlock{Type: b.Type}, deltas
	case useBlock:
		for _, piece := range pieces(string(b.Input)) {
			deltas = append(deltas, blockDelta{Type: "input_json_delta", PartialJSON: &piece})
		}
		return useBlock{b.Type, b.ID, b.Name, json.RawMessage(`{}`)}, deltas
	default:
		return block, nil
	}
}

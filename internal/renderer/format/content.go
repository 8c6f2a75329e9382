// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// ThinkOpen and ThinkClose enclose reasoning in most families.
const (
	ThinkOpen  = "<think>"
	ThinkClose = "</think>"
)

// PlainText returns the text of a message, which must consist of one text.
func PlainText(m chat.Message) (string, error) {
	if !m.IsStructured() {
		return m.Content, nil
	}
	parts := m.AllParts()
	if len(parts) == 1 && !parts[0].Thinking {
		return parts[0].Text, nil
	}
	return "", fmt.Errorf("its content is to be one text, without reasoning: %w", renderer.ErrUnsupported)
}

// HasReasoning reports whether a message has reasoning, including reasoning that is written into its text.
func HasReasoning(m chat.Message) bool {
	if m.IsStructured() {
		return HasThinking(m.AllParts())
	}
	return strings.Contains(m.Content, ThinkOpen)
}

// HasThinking reports whether one of the parts is reasoning.
func HasThinking(parts []chat.Part) bool {
	return slices.ContainsFunc(parts, func(p chat.Part) bool { return p.Thinking })
}

// HasText reports whether one of the parts is text that is not empty.
func HasText(parts []chat.Part) bool {
	return slices.ContainsFunc(parts, func(p chat.Part) bool { return !p.Thinking && p.Text != "" })
}

// TextOf joins the text of parts.
func TextOf(parts []chat.Part) string { return join(parts, false) }

// ThinkingOf joins the reasoning of parts.
func ThinkingOf(parts []chat.Part) string { return join(parts, true) }

func join(parts []chat.Part, thinking bool) string {
	var out strings.Builder
	for _, p := range parts {
		if p.Thinking == thinking {
			out.WriteString(p.Text)
		}
	}
	return out.String()
}

// SplitSystem returns the text of a leading system message and the messages after it.
func SplitSystem(messages []chat.Message) (system string, rest []chat.Message, err error) {
	if len(messages) == 0 || messages[0].Role != chat.RoleSystem {
		return "", messages, nil
	}
	if HasThinking(messages[0].AllParts()) {
		return "", nil, fmt.Errorf("rendering the system message: it holds reasoning: %w", renderer.ErrUnsupported)
	}
	return TextOf(messages[0].AllParts()), messages[1:], nil
}

// Declare replaces the system message of a conversation by the messages that first returns for the system's text and
// the tools. If the conversation has no list of tools, Declare returns its messages unchanged.
func Declare(c renderer.Conversation, first func(system string, tools []chat.Tool) ([]chat.Message,
	error)) ([]chat.Message, error) {
	if c.Tools == nil {
		return c.Messages, nil
	}
	system, rest, err := SplitSystem(c.Messages)
	if err != nil {
		return nil, err
	}
	front, err := first(system, c.Tools)
	if err != nil {
		return nil, err
	}
	return slices.Concat(front, rest), nil
}

// ErrArguments reports that a call cannot be written.
var ErrArguments = errors.New("the arguments of a call are to be a JSON object")

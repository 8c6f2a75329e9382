// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"errors"
	"fmt"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"slices"
	"strings"
)

// Tags of reasoning and of calls, as families write them.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// plainText gives the text of a message that can only be one text.
func plainText(m chat.Message) (string, error) {
	if !m.IsStructured() {
		return m.Content, nil
	}
	parts := m.AllParts()
	if len(parts) == 1 && !parts[0].Thinking {
		return parts[0].Text, nil
	}
	return "", fmt.Errorf("its content is to be one text, without reasoning: %w", ErrUnsupported)
}

// hasReasoning says whether a message holds reasoning, also reasoning that is written into its text.
func hasReasoning(m chat.Message) bool {
	if m.IsStructured() {
		return hasThinking(m.AllParts())
	}
	return strings.Contains(m.Content, thinkOpen)
}

// hasThinking says whether one of the parts is reasoning.
func hasThinking(parts []chat.Part) bool {
	return slices.ContainsFunc(parts, func(p chat.Part) bool { return p.Thinking })
}

// hasText says whether one of the parts is text that is not empty.
func hasText(parts []chat.Part) bool {
	return slices.ContainsFunc(parts, func(p chat.Part) bool { return !p.Thinking && p.Text != "" })
}

// textOf puts the text of parts together.
func textOf(parts []chat.Part) string { return join(parts, false) }

// thinkingOf puts the reasoning of parts together.
func thinkingOf(parts []chat.Part) string { return join(parts, true) }

func join(parts []chat.Part, thinking bool) string {
	var out strings.Builder
	for _, p := range parts {
		if p.Thinking == thinking {
			out.WriteString(p.Text)
		}
	}
	return out.String()
}

// systemFirst takes a leading system message off a conversation and gives its text.
func systemFirst(messages []chat.Message) (system string, rest []chat.Message, err error) {
	if len(messages) == 0 || messages[0].Role != chat.RoleSystem {
		return "", messages, nil
	}
	if hasThinking(messages[0].AllParts()) {
		return "", nil, fmt.Errorf("rendering the system message: it holds reasoning: %w", ErrUnsupported)
	}
	return textOf(messages[0].AllParts()), messages[1:], nil
}

// errArguments says that a call cannot be written.
var errArguments = errors.New("the arguments of a call are to be a JSON object")

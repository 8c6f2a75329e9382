// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Tags of reasoning and of calls, as families write them.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// structured says whether a message is made of parts, not of one text.
func (m Message) structured() bool { return m.Parts != nil || m.Thinking != "" }

// parts gives a message piece by piece.
func (m Message) parts() []Part {
	switch {
	case m.Parts != nil:
		return m.Parts
	case m.Thinking == "":
		return []Part{{Text: m.Content}}
	case m.Content == "":
		return []Part{{Text: m.Thinking, Thinking: true}}
	default:
		return []Part{{Text: m.Thinking, Thinking: true}, {Text: m.Content}}
	}
}

// withText gives the message with one text in place of all it says.
func (m Message) withText(text string) Message {
	m.Content, m.Thinking, m.Parts = text, "", nil
	return m
}

// withParts gives the message made of parts.
func (m Message) withParts(parts []Part) Message {
	m.Content, m.Thinking, m.Parts = "", "", parts
	return m
}

// plain gives the text of a message that can only be one text.
func (m Message) plain() (string, error) {
	if !m.structured() {
		return m.Content, nil
	}
	parts := m.parts()
	if len(parts) == 1 && !parts[0].Thinking {
		return parts[0].Text, nil
	}
	return "", fmt.Errorf("its content is to be one text, without reasoning: %w", ErrUnsupported)
}

// reasons says whether a message holds reasoning, also reasoning that is written into its text.
func (m Message) reasons() bool {
	if m.structured() {
		return hasThinking(m.parts())
	}
	return strings.Contains(m.Content, thinkOpen)
}

// saysNothing says whether there is neither text nor a part.
func (m Message) saysNothing() bool {
	return !m.structured() && m.Content == "" || m.structured() && len(m.parts()) == 0
}

// hasThinking says whether one of the parts is reasoning.
func hasThinking(parts []Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.Thinking })
}

// hasText says whether one of the parts is text that is not empty.
func hasText(parts []Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return !p.Thinking && p.Text != "" })
}

// textOf puts the text of parts together.
func textOf(parts []Part) string { return join(parts, false) }

// thinkingOf puts the reasoning of parts together.
func thinkingOf(parts []Part) string { return join(parts, true) }

func join(parts []Part, thinking bool) string {
	var out strings.Builder
	for _, p := range parts {
		if p.Thinking == thinking {
			out.WriteString(p.Text)
		}
	}
	return out.String()
}

// systemFirst takes a leading system message off a conversation and gives its text.
func systemFirst(messages []Message) (system string, rest []Message, err error) {
	if len(messages) == 0 || messages[0].Role != RoleSystem {
		return "", messages, nil
	}
	if hasThinking(messages[0].parts()) {
		return "", nil, fmt.Errorf("rendering the system message: it holds reasoning: %w", ErrUnsupported)
	}
	return textOf(messages[0].parts()), messages[1:], nil
}

// errArguments says that a call cannot be written.
var errArguments = errors.New("the arguments of a call are to be a JSON object")

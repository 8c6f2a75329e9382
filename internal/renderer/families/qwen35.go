// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
)

// qwen35Variant has the settings in which the variants of Qwen3.5 and Qwen3.8 differ.
type qwen35Variant struct {
	history format.History
	// keeps means that the reasoning of earlier turns stays.
	keeps bool
	// noThinking means that the prompt closes the block of reasoning.
	noThinking bool
	// framed means that an empty block precedes every turn without reasoning, not only those after the user's last
	// message. Then only reasoning in a part of its own counts.
	framed bool
	// effort is the sentence about the effort in the system message. Only Qwen3.8 has one.
	effort string
	// scalar writes an argument that is neither text nor a container.
	scalar func(value any) string
}

// newQwen35 builds the format of Qwen3.5, 3.6 and, if framed, 3.8. The prompt opens the block of reasoning, text is
// trimmed, calls are written as <function=name>, and consecutive results of tools share one message of the user.
func newQwen35(variant qwen35Variant) builder {
	return withTokens(qwenTokens, func(v *format.Vocabulary) format.Family {
		d := &dialect{chatML: newChatML(v, variant.history), strips: stripsHistory, result: "\n" + toolcall.ResultClose,
			grouped: true, between: "\n", split: true}
		d.suffix, d.xml = "<think>\n", true
		d.declare, d.unframe = toolcall.DeclareXML, unframeQwen35
		d.prepare = func(m chat.Message, _ format.Place) (chat.Message, error) { return trimmed(m), nil }
		d.lead = emptyBlockSinceUser
		d.thinking = func(text string) string { return "<think>\n" + text + "\n</think>\n\n" }
		d.calls = func(m chat.Message) (string, error) {
			separator := ""
			if pyjson.Strip(format.TextOf(m.AllParts())) != "" {
				separator = "\n\n"
			}
			calls, err := toolcall.WriteXML(m.Calls, variant.scalar)
			return separator + strings.Join(calls, "\n"), err
		}
		if variant.keeps {
			d.strips = stripsNothing
		}
		if variant.noThinking {
			d.suffix, d.NoReasoning = emptyBlock, true
		}
		if variant.framed {
			d.lead = emptyBlockAlways
			return &qwen38{dialect: d, effort: variant.effort}
		}
		return d
	})
}

func emptyBlockSinceUser(m chat.Message, at format.Place) string {
	if at.Index <= at.LastUser || format.HasReasoning(m) {
		return ""
	}
	return emptyBlock
}

// emptyBlockAlways ignores reasoning within text.
func emptyBlockAlways(m chat.Message, _ format.Place) string {
	if m.IsStructured() && format.HasThinking(m.AllParts()) {
		return ""
	}
	return emptyBlock
}

// trimmed removes the white space at both ends of a message's text, ignoring reasoning.
func trimmed(m chat.Message) chat.Message {
	if !m.IsStructured() {
		m.Content = pyjson.Strip(m.Content)
		return m
	}
	parts := slices.Clone(m.AllParts())
	trim(parts, slices.All(parts), pyjson.StripLeft)
	trim(parts, slices.Backward(parts), pyjson.StripRight)
	return m.WithParts(parts)
}

// trim strips parts in an order, up to the first part that still has text.
func trim(parts []chat.Part, order func(func(int, chat.Part) bool), strip func(string) string) {
	for i := range order {
		if parts[i].Thinking {
			continue
		}
		if parts[i].Text = strip(parts[i].Text); parts[i].Text != "" {
			return
		}
	}
}

// unframeQwen35 removes the white space that the format writes around reasoning, and trims the reasoning before the
// first text.
func unframeQwen35(parts []chat.Part) []chat.Part {
	parts = unframeQwen3(parts)
	seen := false
	for i := range parts {
		if seen && !parts[i].Thinking {
			break
		}
		if parts[i].Thinking {
			parts[i].Text = pyjson.Strip(parts[i].Text)
			seen = true
		}
	}
	return parts
}

// qwen38 is Qwen3.5's format with the effort in the system message.
type qwen38 struct {
	*dialect
	effort string
}

// Arrange implements format.Family. A system message that would be empty is left out.
func (q *qwen38) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	messages, err := q.dialect.Arrange(conversation)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 || messages[0].Role != chat.RoleSystem {
		if q.effort == "" {
			return messages, nil
		}
		return slices.Concat([]chat.Message{{Role: chat.RoleSystem, Content: q.effort}}, messages), nil
	}
	text, rest, err := format.SplitSystem(messages)
	if err != nil {
		return nil, err
	}
	text = q.withEffort(pyjson.Strip(text))
	if text == "" {
		return rest, nil
	}
	return slices.Concat([]chat.Message{messages[0].WithText(text)}, rest), nil
}

func (q *qwen38) withEffort(text string) string {
	switch {
	case q.effort == "" || text == q.effort || strings.HasPrefix(text, q.effort+"\n\n"):
		return text
	case text == "":
		return q.effort
	default:
		return q.effort + "\n\n" + text
	}
}

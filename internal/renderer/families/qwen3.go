// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
)

// qwen3 is the format of Qwen3's text models:
//
//	<|im_start|>user
//	2+2?<|im_end|>
//	<|im_start|>assistant
//	<think>
//	two and two
//	</think>
//
//	4<|im_end|>
//
// A tool's result is a message of the user. Reasoning of earlier turns is dropped.
type qwen3 struct {
	chatML
	// framed means that the current turn has a block of reasoning, even if it is empty.
	framed bool
	// strips means that the reasoning of all messages but the last is dropped.
	strips bool
	// noThinking means that every prompt opens an empty block of reasoning.
	noThinking bool
}

// qwen3Variant has the settings in which the variants differ.
type qwen3Variant struct {
	framed, strips, noThinking bool
	suffix                     string
	history                    format.History
}

func newQwen3(variant qwen3Variant) builder {
	return withTokens(qwenTokens, func(v *format.Vocabulary) format.Family {
		q := &qwen3{chatML: newChatML(v, variant.history), framed: variant.framed, strips: variant.strips,
			noThinking: variant.noThinking}
		q.suffix, q.declare, q.NoReasoning = variant.suffix, toolcall.DeclareJSON, variant.noThinking
		if q.framed {
			q.unframe = unframeQwen3
		}
		return q
	})
}

// Write implements format.Family.
func (q *qwen3) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	if q.noThinking && m.Role == chat.RoleAssistant && at.IsLast() && !m.IsEmpty() && at.LastUser < 0 {
		return fmt.Errorf("without a message of the user, the format writes no empty block of reasoning, which the prompt "+
			"always opens; "+
			"add a message of the user, or take the renderer that thinks: %w", renderer.ErrUnsupported)
	}
	text, err := q.output(m, at)
	if err != nil {
		return err
	}
	header(out, at, m.Role).Body()
	out.Text(text).Token(imEnd)
	return nil
}

// frames reports whether a message's reasoning is written as reasoning of the current turn. A conversation without a
// message of the user has no such turn.
func (q *qwen3) frames(m chat.Message, at format.Place) bool {
	return q.framed && m.Role == chat.RoleAssistant && at.LastUser >= 0 && (at.IsLast() || !q.strips)
}

func (q *qwen3) output(m chat.Message, at format.Place) (string, error) {
	frames := q.frames(m, at)
	out := q.content(m, at, frames)
	separator := ""
	if out != "" {
		separator = "\n"
	}
	if frames && !format.HasReasoning(m) {
		out = frame("") + strings.TrimLeft(out, "\n")
	}
	if m.Role == chat.RoleTool {
		out = toolcall.ResultOpen + "\n" + out + "\n" + toolcall.ResultClose
	}
	if len(m.Calls) == 0 {
		return out, nil
	}
	calls, err := toolcall.WriteJSON(m.Calls)
	return out + separator + calls, err
}

// content writes the content of a message, without calls.
func (q *qwen3) content(m chat.Message, at format.Place, frames bool) string {
	if m.IsStructured() {
		return q.pieces(m.AllParts(), q.strips && m.Role == chat.RoleAssistant && !at.IsLast(), frames)
	}
	reasoning, rest, found := strings.Cut(m.Content, format.ThinkClose)
	if !frames || !found {
		return m.Content
	}
	if i := strings.LastIndex(reasoning, format.ThinkOpen); i >= 0 {
		reasoning = reasoning[i+len(format.ThinkOpen):]
	}
	return frame(reasoning) + strings.TrimLeft(rest, "\n")
}

func (q *qwen3) pieces(parts []chat.Part, strip, frames bool) string {
	var out strings.Builder
	framed := false
	for _, p := range parts {
		switch {
		case p.Thinking && strip:
			continue
		case p.Thinking && frames:
			out.WriteString(frame(p.Text))
		case p.Thinking:
			out.WriteString(format.ThinkOpen + p.Text + format.ThinkClose)
		case framed:
			// The block has written the blank line already.
			out.WriteString(strings.TrimLeft(p.Text, "\n"))
		default:
			out.WriteString(p.Text)
		}
		framed = p.Thinking && frames
	}
	return out.String()
}

// frame writes a block of reasoning.
func frame(reasoning string) string {
	return "<think>\n" + strings.Trim(reasoning, "\n") + "\n</think>\n\n"
}

// unframeQwen3 undoes frame: the line breaks belong to the block, and an empty block is not reasoning.
func unframeQwen3(parts []chat.Part) []chat.Part {
	out := []chat.Part{}
	framed := false
	for _, p := range parts {
		if p.Thinking {
			out = format.AppendPart(out, strings.Trim(p.Text, "\n"), true)
		} else if framed {
			out = append(out, chat.Part{Text: strings.TrimLeft(p.Text, "\n")})
		} else {
			out = append(out, p)
		}
		framed = p.Thinking
	}
	return out
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/toolcall"
)

// dialect is the format of the families after Qwen3: Qwen3-VL, Qwen3.5, Qwen3.8 and Nemotron. They write each message
// as one text, and differ in these fields.
type dialect struct {
	chatML
	// prepare changes a message before it is written. It is nil if messages stay unchanged.
	prepare func(m chat.Message, at format.Place) (chat.Message, error)
	// strips reports whether the reasoning of an assistant's message is dropped.
	strips func(at format.Place) bool
	// lead returns the text between the assistant's header and its content. It is nil if the format has no such text.
	lead func(m chat.Message, at format.Place) string
	// thinking writes reasoning.
	thinking func(text string) string
	// calls writes calls, including the separator from the text before them.
	calls func(m chat.Message) (string, error)
	// result is written after a tool's result.
	result string
	// grouped means that consecutive results of tools share one message, with between before each but the first.
	grouped bool
	between string
	// split means that the text which the prompt ends with is tokenised apart from the rest of the last message.
	split bool
}

// Write implements format.Family.
func (d *dialect) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	if d.prepare != nil {
		var err error
		if m, err = d.prepare(m, at); err != nil {
			return err
		}
	}
	text, err := d.output(m, at)
	if err != nil {
		return err
	}
	d.head(out, m, at)
	out.Text(text)
	if !d.continues(m, at.Precedes(chat.RoleTool)) {
		out.Token(imEnd)
	}
	return nil
}

// continues reports whether a message is a tool's result that shares a message with its neighbour. neighbour says that
// the neighbour is a tool's result.
func (d *dialect) continues(m chat.Message, neighbour bool) bool {
	return d.grouped && m.Role == chat.RoleTool && neighbour
}

func (d *dialect) head(out *format.Writer, m chat.Message, at format.Place) {
	if d.continues(m, at.Follows(chat.RoleTool)) {
		out.Text(d.between).Body()
		return
	}
	header(out, at, m.Role)
	if m.Role != chat.RoleAssistant || d.lead == nil {
		out.Body()
		return
	}
	lead := d.lead(m, at)
	rest, given := strings.CutPrefix(lead, d.suffix)
	if d.split && at.IsLast() && given {
		out.Text(d.suffix).Body()
		out.Text(rest).Cut()
		return
	}
	out.Text(lead).Body()
}

func (d *dialect) output(m chat.Message, at format.Place) (string, error) {
	strip := m.Role == chat.RoleAssistant && d.strips(at)
	var out strings.Builder
	for _, p := range m.AllParts() {
		switch {
		case !p.Thinking:
			out.WriteString(p.Text)
		case !strip:
			out.WriteString(d.thinking(p.Text))
		}
	}
	text := out.String()
	if m.Role == chat.RoleTool {
		text = toolcall.ResultOpen + "\n" + text + d.result
	}
	if len(m.Calls) == 0 {
		return text, nil
	}
	calls, err := d.calls(m)
	return text + calls, err
}

// stripsHistory drops the reasoning of all messages except the last one. The models' own templates drop reasoning only
// before the user's last message.
func stripsHistory(at format.Place) bool { return !at.IsLast() }

func stripsNothing(format.Place) bool { return false }

// qwen3VLVariant has the settings in which the variants differ.
type qwen3VLVariant struct{ framed bool }

// newQwen3VL builds Qwen3-VL's format. It differs from Qwen3's: reasoning has no line breaks around it, and there is no
// empty block.
func newQwen3VL(variant qwen3VLVariant) builder {
	return withTokens(qwenTokens, func(v *format.Vocabulary) format.Family {
		d := &dialect{chatML: newChatML(v, format.ReasoningDropped), strips: stripsHistory,
			result: "\n" + toolcall.ResultClose}
		d.declare = toolcall.DeclareJSON
		d.thinking = func(text string) string { return format.ThinkOpen + text + format.ThinkClose }
		d.calls = func(m chat.Message) (string, error) {
			calls, err := toolcall.WriteJSON(m.Calls)
			return "\n" + calls, err
		}
		if variant.framed {
			d.unframe = unframeQwen3
		}
		return d
	})
}

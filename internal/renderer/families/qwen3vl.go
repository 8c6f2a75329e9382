// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// dialect is how the families write that came after Qwen3: Qwen3-VL, Qwen3.5, Qwen3.8 and Nemotron. They
// tokenise a message's text together with the token that ends it, and differ in what is set here.
type dialect struct {
	im
	// prepare changes a message before it is written; nil for nothing.
	prepare func(m chat.Message, at format.Place) (chat.Message, error)
	// strips reports whether the reasoning of an assistant's message is dropped.
	strips func(at format.Place) bool
	// lead stands between the assistant's header and what it says; nil for nothing.
	lead func(m chat.Message, at format.Place) string
	// thinking writes reasoning.
	thinking func(text string) string
	// calls writes calls, with what separates them from the text before.
	calls func(m chat.Message) (string, error)
	// result follows a tool's result.
	result string
	// grouped puts tools' results that follow each other into one message, with between before each but
	// the first.
	grouped bool
	between string
	// split tokenises what the prompt has given apart from what the last message adds to it.
	split bool
}

// Write implements family.
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

// continues reports whether a tool's result stands in one message with its neighbour, which is one, too.
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
		text = resultOpen + "\n" + text + d.result
	}
	if len(m.Calls) == 0 {
		return text, nil
	}
	calls, err := d.calls(m)
	return text + calls, err
}

// stripsHistory drops the reasoning of all but the last message. The models' own templates drop it only
// before the user's last message.
func stripsHistory(at format.Place) bool { return !at.IsLast() }

func stripsNothing(format.Place) bool { return false }

// qwen3VLVariant is what the variants differ in.
type qwen3VLVariant struct{ framed bool }

// newQwen3VL builds Qwen3-VL's format: Qwen3's, but that a turn's reasoning has no line breaks around it
// and is never put there empty.
func newQwen3VL(variant qwen3VLVariant) builder {
	return func(tokens tokenizer.Tokenizer, options Options) (format.Family, error) {
		v, err := format.NewVocabulary(tokens, options.Match, qwenTokens...)
		if err != nil {
			return nil, err
		}
		d := &dialect{im: newIM(v, format.ReasoningDropped), strips: stripsHistory, result: "\n" + resultClose}
		d.declare = declareQwen3
		d.thinking = func(text string) string { return format.ThinkOpen + text + format.ThinkClose }
		d.calls = func(m chat.Message) (string, error) {
			calls, err := jsonCalls(m.Calls)
			return "\n" + calls, err
		}
		if variant.framed {
			d.unframe = unframeQwen3
		}
		return d, nil
	}
}

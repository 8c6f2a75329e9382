// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/stoptext"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// reader reads the tokens of a reply, whole or not.
type reader struct {
	format *load.Renderer
	// raw says that the reply is text that continues a text.
	raw bool
	// thinks says that the prompt has begun the reply's reasoning.
	thinks bool
	// close are the tokens that end reasoning, and stop are the tokens that end a reply.
	close, stop []int32
}

// newReader returns a reader of replies to a prompt.
func newReader(r *load.Renderer, prompt []int32, raw bool) (*reader, error) {
	const longest = 16
	end, err := r.Tokens.Decode(prompt[max(0, len(prompt)-longest):])
	if err != nil {
		return nil, fmt.Errorf("reading the prompt: %w", err)
	}
	read := &reader{format: r, raw: raw, thinks: strings.HasSuffix(strings.TrimSpace(end), format.ThinkOpen),
		close: r.Tokens.AppendEncode(nil, format.ThinkClose, tokenizer.Specials)}
	if stop := r.Stop(); len(stop.Tokens) > 0 {
		read.stop = stop.Tokens[:1]
	} else if len(stop.Strings) > 0 {
		read.stop = r.Tokens.Encode(stop.Strings[0])
	}
	return read, nil
}

// message returns the message that tokens encode. An unfinished reply is read as if it ended after the tokens, with its
// reasoning closed.
func (r *reader) message(tokens []int32, ended bool) (chat.Message, error) {
	if r.raw {
		text, err := r.format.Tokens.Decode(r.withoutStop(tokens))
		if _, at := stoptext.First(text, r.format.Stop().Strings); ended {
			text = text[:at]
		}
		return chat.Message{Role: chat.RoleAssistant, Content: text}, err
	}
	parsed, err := r.format.Parse(tokens)
	if err != nil {
		return chat.Message{}, err
	}
	if !ended || parsed.Ending == renderer.Truncated {
		text, decodeErr := r.format.Tokens.Decode(tokens)
		if decodeErr != nil {
			return chat.Message{}, decodeErr
		}
		opened, closed := strings.LastIndex(text, format.ThinkOpen), strings.LastIndex(text, format.ThinkClose)
		tokens = slices.Clone(tokens)
		if opened > closed || closed < 0 && r.thinks {
			tokens = append(tokens, r.close...)
		}
		parsed, err = r.format.Parse(append(tokens, r.stop...))
	}
	parsed.Message.Role, parsed.Message.Sampled = chat.RoleAssistant, nil
	return parsed.Message, err
}

// withoutStop returns tokens without the stop token at their end.
func (r *reader) withoutStop(tokens []int32) []int32 {
	if last := len(tokens) - 1; last >= 0 && slices.Contains(r.format.Stop().Tokens, tokens[last]) {
		return tokens[:last]
	}
	return tokens
}

// says returns the text of a reply without its reasoning.
func (r *reader) says(tokens []int32) (string, error) {
	m, err := r.message(tokens, false)
	text := ""
	for _, part := range m.AllParts() {
		if !part.Thinking {
			text += part.Text
		}
	}
	return text, err
}

// tags begin the parts of a reply that, in some format, are not text for people: reasoning, calls of tools, headers.
var tags = []string{"<think", "</think", "<tool_call", "</tool_call", "<function", "<|", "<｜", "[THINK]", "[/THINK]",
	"[TOOL_CALLS]"}

// settled returns the beginning of the last text of an unfinished reply, as far as later tokens do not change it. It
// leaves out white space at the end, half a character, and the beginning of a tag or stop text.
func settled(text string, raw bool, stops []string) string {
	text = strings.TrimRight(text, string(utf8.RuneError))
	held := slices.Clone(stops)
	if !raw {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
		held = append(held, tags...)
	}
	cut := len(text)
	for _, mark := range held {
		if at := strings.Index(text, mark); at >= 0 {
			cut = min(cut, at)
		}
		for size := min(len(mark)-1, len(text)); size > 0; size-- {
			if strings.HasSuffix(text, mark[:size]) {
				cut = min(cut, len(text)-size)
				break
			}
		}
	}
	if text = text[:cut]; !raw {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	return text
}

// settledParts returns the parts of an unfinished reply that later tokens do not change.
func settledParts(m chat.Message, raw bool, stops []string) []chat.Part {
	parts := slices.Clone(m.AllParts())
	if len(m.Calls) > 0 {
		return nil // The format may move the text around them.
	}
	if last := len(parts) - 1; last >= 0 {
		parts[last].Text = settled(parts[last].Text, raw, stops)
	}
	return slices.DeleteFunc(parts, func(p chat.Part) bool { return p.Text == "" })
}

// growth returns the pieces that parts add to the shown parts. ok is false if parts do not begin with the shown
// parts.
func growth(shown, parts []chat.Part) (pieces []chat.Part, ok bool) {
	for i, part := range parts {
		before := ""
		if i < len(shown) {
			if shown[i].Thinking != part.Thinking {
				return nil, false
			}
			before = shown[i].Text
		}
		more, begins := strings.CutPrefix(part.Text, before)
		if !begins || i < len(shown)-1 && more != "" {
			return nil, false
		}
		if more != "" {
			pieces = append(pieces, chat.Part{Text: more, Thinking: part.Thinking})
		}
	}
	return pieces, len(parts) >= len(shown)
}

// conform returns the parts of a whole reply so that they begin with the shown parts. The two may differ in the white
// space around texts, which some formats strip once they know that calls follow.
func conform(shown, parts []chat.Part) ([]chat.Part, error) {
	if _, ok := growth(shown, parts); ok {
		return parts, nil
	}
	parts = slices.Clone(parts)
	for i, part := range shown {
		trimmed := strings.TrimSpace(part.Text)
		if i >= len(parts) || parts[i].Thinking != part.Thinking ||
			!strings.HasPrefix(strings.TrimSpace(parts[i].Text), trimmed) {
			return nil, fmt.Errorf("reading a reply: its end changes how its beginning is read, which was sent")
		}
		rest := strings.TrimSpace(parts[i].Text)[len(trimmed):]
		parts[i].Text = part.Text + rest
	}
	return parts, nil
}

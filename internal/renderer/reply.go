// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// reply is what a reply is found to hold.
type reply struct {
	text string
	// parts of a reply that has any; nil for one that is only text.
	parts    []chat.Part
	calls    []chat.ToolCall
	unparsed []UnparsedCall
}

// cut decodes a reply up to its stop. prefix is what the prompt has begun it with. Two stops mean that
// sampling went on after the first; the text before it is still worth something.
func (p *profile) cut(prefix string, sampled []int32) (text string, parsed Parsed, err error) {
	stops := 0
	until := len(sampled)
	for i, id := range slices.Backward(sampled) {
		if p.isStop(id) {
			stops++
			until = i
		}
	}
	text, err = p.tokens.Decode(sampled[:until])
	text = prefix + text
	switch stops {
	case 0:
		parsed.Ending, parsed.Message.Content = Truncated, text
	case 1:
		parsed.Ending = Stopped
	default:
		parsed.Ending = Malformed
		parsed.Problem = fmt.Sprintf("the reply has %d stop tokens: sampling has to end with the first", stops)
	}
	return text, parsed, err
}

// with fills in what was found in a reply that ended.
func (p Parsed) with(r reply) Parsed {
	p.Message.Content, p.Message.Parts, p.Message.Calls, p.Unparsed = r.text, r.parts, r.calls, r.unparsed
	if r.parts != nil {
		p.Message.Content, p.Message.Thinking = textOf(r.parts), thinkingOf(r.parts)
	}
	if len(r.unparsed) > 0 && p.Problem == "" {
		p.Ending, p.Problem = Malformed, "a call of a tool cannot be read: "+r.unparsed[0].Problem
	}
	return p
}

// span is a block within a text, tags included.
type span struct {
	begin, end int
	// inner is what the tags enclose.
	inner string
}

// find gives the first block from an index on that is opened and closed.
func find(text string, from int, opening, closing string) (span, bool) {
	begin := strings.Index(text[from:], opening)
	if begin < 0 {
		return span{}, false
	}
	begin += from
	inner := begin + len(opening)
	size := strings.Index(text[inner:], closing)
	if size < 0 {
		return span{}, false
	}
	return span{begin: begin, end: inner + size + len(closing), inner: text[inner : inner+size]}, true
}

// finder finds blocks of one kind, from the start of a text to its end. It looks at each part of the text
// once, however the blocks of several finders lie.
type finder struct {
	text, opening, closing string
	next                   span
	none                   bool
}

// from gives the first block from an index on, which does not go back.
func (f *finder) from(at int) (span, bool) {
	if !f.none && (f.next.end == 0 || f.next.begin < at) {
		var ok bool
		f.next, ok = find(f.text, at, f.opening, f.closing)
		f.none = !ok
	}
	return f.next, !f.none
}

// callTags are what frames a call in formats that write who is called, a separator and the arguments.
type callTags struct{ opening, separator, closing string }

// calls reads the calls of a section. Those whose arguments are JSON are called for, whatever the JSON is.
// read gives the call that stands before the separator, or false for what is none.
func (c callTags) calls(section string, read func(head string) (chat.ToolCall, bool)) (calls []chat.ToolCall, unparsed []UnparsedCall) {
	for at := 0; ; {
		begin := strings.Index(section[at:], c.opening)
		if begin < 0 {
			return calls, unparsed
		}
		begin += at
		at = begin + len(c.opening)
		size := strings.IndexByte(section[at:], '<')
		if size < 0 || !strings.HasPrefix(section[at+size:], c.separator) {
			continue
		}
		call, ok := read(section[at : at+size])
		if !ok {
			continue
		}
		arguments, _, ok := strings.Cut(section[at+size+len(c.separator):], c.closing)
		if !ok {
			return calls, unparsed
		}
		at += size + len(c.separator) + len(arguments) + len(c.closing)
		call.Arguments = pyjson.Strip(arguments)
		if _, err := pyjson.Parse(call.Arguments); err != nil {
			unparsed = append(unparsed, UnparsedCall{Text: section[begin:at], Problem: "Invalid JSON: " + err.Error()})
			continue
		}
		calls = append(calls, call)
	}
}

// thoughts splits text into reasoning and the text around it; nil when there is no reasoning. Empty parts
// are left out.
func thoughts(text string) []chat.Part {
	if !strings.Contains(text, thinkOpen) {
		return nil
	}
	parts, at := []chat.Part{}, 0
	for {
		block, ok := find(text, at, thinkOpen, thinkClose)
		if !ok {
			return appendPart(parts, text[at:], false)
		}
		parts = appendPart(parts, text[at:block.begin], false)
		parts = appendPart(parts, block.inner, true)
		at = block.end
	}
}

func appendPart(parts []chat.Part, text string, thinking bool) []chat.Part {
	if text == "" {
		return parts
	}
	return append(parts, chat.Part{Text: text, Thinking: thinking})
}

// longestDetail is how much of a call that is not closed is kept, in characters.
const longestDetail = 16384

// unterminated gives the last block of a text that is opened and never closed.
func unterminated(text, opening, closing string) []UnparsedCall {
	opened := strings.Count(text, opening)
	if opened == 0 || opened <= strings.Count(text, closing) {
		return nil
	}
	raw := text[strings.LastIndex(text, opening):]
	return []UnparsedCall{{
		Text:    firstCharacters(raw, longestDetail),
		Problem: fmt.Sprintf("unterminated tool block: '%s' opened without a matching '%s'", opening, closing),
	}}
}

func firstCharacters(text string, most int) string {
	count := 0
	for i := range text {
		if count == most {
			return text[:i]
		}
		count++
	}
	return text
}

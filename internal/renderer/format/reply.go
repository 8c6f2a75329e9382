// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// Reply has the parts of a sampled reply.
type Reply struct {
	Text string
	// Parts are the parts of the reply; nil if the reply is only text.
	Parts    []chat.Part
	Calls    []chat.ToolCall
	Unparsed []renderer.UnparsedCall
}

// DecodeReply decodes a reply up to its first stop. prefix is the beginning of the reply in the prompt. Two stops mean
// that sampling continued after the first; the text before it is still returned.
func (p *Profile) DecodeReply(prefix string, sampled []int32) (text string, parsed renderer.Parsed, err error) {
	stops := 0
	until := len(sampled)
	for i, id := range slices.Backward(sampled) {
		if p.IsStop(id) {
			stops++
			until = i
		}
	}
	text, err = p.Tokens.Decode(sampled[:until])
	text = prefix + text
	switch stops {
	case 0:
		parsed.Ending, parsed.Message.Content = renderer.Truncated, text
	case 1:
		parsed.Ending = renderer.Stopped
	default:
		parsed.Ending = renderer.Malformed
		parsed.Problem = fmt.Sprintf("the reply has %d stop tokens: sampling has to end with the first", stops)
	}
	return text, parsed, err
}

// WithReply returns p with the parts of a reply that ended.
func WithReply(p renderer.Parsed, r Reply) renderer.Parsed {
	p.Message.Content, p.Message.Parts, p.Message.Calls, p.Unparsed = r.Text, r.Parts, r.Calls, r.Unparsed
	if r.Parts != nil {
		p.Message.Content, p.Message.Thinking = TextOf(r.Parts), ThinkingOf(r.Parts)
	}
	if len(r.Unparsed) > 0 && p.Problem == "" {
		p.Ending, p.Problem = renderer.Malformed, Unreadable(r.Unparsed)
	}
	return p
}

// Unreadable returns the problem of a reply whose only problem is calls that cannot be read.
func Unreadable(unparsed []renderer.UnparsedCall) string {
	return "a call of a tool cannot be read: " + unparsed[0].Problem
}

// Span is a block within a text, including its tags.
type Span struct {
	Begin, End int
	// Inner is the text between the tags.
	Inner string
}

// Find returns the first block from an index on that is opened and closed.
func Find(text string, from int, opening, closing string) (Span, bool) {
	begin := strings.Index(text[from:], opening)
	if begin < 0 {
		return Span{}, false
	}
	begin += from
	inner := begin + len(opening)
	size := strings.Index(text[inner:], closing)
	if size < 0 {
		return Span{}, false
	}
	return Span{Begin: begin, End: inner + size + len(closing), Inner: text[inner : inner+size]}, true
}

// Finder finds the blocks of one kind in a text, from its start to its end. It reads each part of the text once,
// however the blocks of several finders interleave.
type Finder struct {
	Text, Opening, Closing string
	next                   Span
	none                   bool
}

// From returns the first block from an index on. The index must not decrease from call to call.
func (f *Finder) From(at int) (Span, bool) {
	if !f.none && (f.next.End == 0 || f.next.Begin < at) {
		var ok bool
		f.next, ok = Find(f.Text, at, f.Opening, f.Closing)
		f.none = !ok
	}
	return f.next, !f.none
}

// CallTags frame a call in formats that write the tool's name, a separator and the arguments.
type CallTags struct{ Opening, Separator, Closing string }

// Parse reads the calls of a section. The arguments of a call must be JSON, of any type. The function read returns the
// call without its arguments from the text before the separator, or false if that text is not valid.
func (c CallTags) Parse(section string, read func(head string) (chat.ToolCall,
	bool)) (calls []chat.ToolCall, unparsed []renderer.UnparsedCall) {
	for at := 0; ; {
		begin := strings.Index(section[at:], c.Opening)
		if begin < 0 {
			return calls, unparsed
		}
		begin += at
		at = begin + len(c.Opening)
		size := strings.IndexByte(section[at:], '<')
		if size < 0 || !strings.HasPrefix(section[at+size:], c.Separator) {
			continue
		}
		call, ok := read(section[at : at+size])
		if !ok {
			continue
		}
		arguments, _, ok := strings.Cut(section[at+size+len(c.Separator):], c.Closing)
		if !ok {
			return calls, unparsed
		}
		at += size + len(c.Separator) + len(arguments) + len(c.Closing)
		call.Arguments = pyjson.Strip(arguments)
		if _, err := pyjson.Parse(call.Arguments); err != nil {
			unparsed = append(unparsed, renderer.UnparsedCall{Text: section[begin:at], Problem: "Invalid JSON: " + err.Error()})
			continue
		}
		calls = append(calls, call)
	}
}

// SplitReasoning splits text into reasoning and the text around it. It returns nil if there is no reasoning. Empty
// parts are left out.
func SplitReasoning(text string) []chat.Part {
	if !strings.Contains(text, ThinkOpen) {
		return nil
	}
	parts, at := []chat.Part{}, 0
	for {
		block, ok := Find(text, at, ThinkOpen, ThinkClose)
		if !ok {
			return AppendPart(parts, text[at:], false)
		}
		parts = AppendPart(parts, text[at:block.Begin], false)
		parts = AppendPart(parts, block.Inner, true)
		at = block.End
	}
}

// AppendPart appends a part, unless its text is empty.
func AppendPart(parts []chat.Part, text string, thinking bool) []chat.Part {
	if text == "" {
		return parts
	}
	return append(parts, chat.Part{Text: text, Thinking: thinking})
}

// longestDetail is how many characters of an unclosed call are kept.
const longestDetail = 16384

// Unterminated returns the last block of a text that is opened and never closed.
func Unterminated(text, opening, closing string) []renderer.UnparsedCall {
	opened := strings.Count(text, opening)
	if opened == 0 || opened <= strings.Count(text, closing) {
		return nil
	}
	raw := text[strings.LastIndex(text, opening):]
	return []renderer.UnparsedCall{{
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

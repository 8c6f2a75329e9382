// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// Read implements format.Family. A reply consists of messages: reasoning, text for the user, calls.
func (g *gptOss) Read(sampled []int32) (renderer.Parsed, error) {
	text, parsed, err := g.DecodeReply("", sampled)
	if err != nil || parsed.Ending == renderer.Truncated {
		return parsed, err
	}
	if g.hasBothStops(sampled) {
		parsed.Ending, parsed.Problem = renderer.Stopped, ""
	}
	return format.WithReply(parsed, readHarmony(text)), nil
}

// unreadHarmonyCall returns the last call of a reply, whose payload cannot be found.
func unreadHarmonyCall(text string) renderer.UnparsedCall {
	raw := text[max(0, strings.LastIndex(text, harmonyStart)):]
	problem := "unterminated tool block: 'to=functions.' tool-call header without a parsable arguments payload"
	return renderer.UnparsedCall{Text: raw, Problem: problem}
}

// hasBothStops reports whether a reply has each of the two stops once. The first of them ended it.
func (g *gptOss) hasBothStops(sampled []int32) bool {
	count := map[int32]int{}
	for _, id := range sampled {
		count[id]++
	}
	return count[g.ID(harmonyReturn)] == 1 && count[g.ID(harmonyCall)] == 1
}

// addPart adds one message of gpt-oss to the reply.
func addPart(r *format.Reply, m harmonyPart) {
	name, isCall := strings.CutPrefix(m.recipient, functionsPrefix)
	switch {
	case isCall:
		if _, err := pyjson.Parse(m.content); err != nil {
			r.Unparsed = append(r.Unparsed, renderer.UnparsedCall{Text: m.raw, Problem: fmt.Sprintf("Invalid JSON: %v", err)})
			return
		}
		r.Calls = append(r.Calls, chat.ToolCall{Name: name, Arguments: pyjson.Strip(m.content)})
	case m.channel == channelAnalysis:
		r.Parts = append(r.Parts, chat.Part{Text: m.content, Thinking: true})
	case m.channel == channelFinal, m.channel == channelCommentary:
		r.Parts = append(r.Parts, chat.Part{Text: m.content})
	}
}

// harmonyPart is one message of a reply.
type harmonyPart struct{ channel, recipient, content, raw string }

// harmonyMessages splits a reply into its messages.
func harmonyMessages(text string) []harmonyPart {
	var out []harmonyPart
	for at := 0; ; {
		header, _, ok := strings.Cut(text[at:], harmonyMessage)
		if !ok {
			return out
		}
		begin := at + max(0, strings.LastIndex(header, harmonyStart))
		content := at + len(header) + len(harmonyMessage)
		header = text[begin : at+len(header)]
		size, closing := contentSize(text[content:])
		out = append(out, harmonyPart{
			channel:   wordAfter(header, harmonyChannel),
			recipient: wordAfter(header, "to="),
			content:   text[content : content+size],
			raw:       text[begin : content+size+closing],
		})
		at = content + size + closing
	}
}

// contentSize returns the length of a message's content and of the token that closes it, which is 0 if it does not
// exist.
func contentSize(text string) (size, closing int) {
	size = len(text)
	for _, name := range []string{harmonyEnd, harmonyCall, harmonyReturn} {
		if i := strings.Index(text[:size], name); i >= 0 {
			size, closing = i, len(name)
		}
	}
	return size, closing
}

// wordAfter returns the first word that follows a marker, up to white space or a token.
func wordAfter(header, marker string) string {
	for {
		_, rest, ok := strings.Cut(header, marker)
		if !ok {
			return ""
		}
		word := rest
		if i := strings.IndexFunc(rest, func(r rune) bool { return r == '<' || pyjson.IsSpace(r) }); i >= 0 {
			word = rest[:i]
		}
		if word != "" {
			return word
		}
		header = rest
	}
}

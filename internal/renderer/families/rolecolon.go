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
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const (
	// separator follows each message.
	separator = "\n\n"
	// nextUser ends a reply. It contains the header of the user's next message.
	nextUser = separator + "User:"
)

// roleColon is a format for base models:
//
//	User: 2+2?
//
//	Assistant: 4
//
//	User:
//
// A reply ends where the user's next message begins, so the policy also samples that header. If the user's message
// follows, the next prompt extends the reply. If another role follows, the reply is written from its text.
type roleColon struct {
	format.Profile
	// endOfText is a token that also ends a reply. It is negative if the tokenizer has no such token.
	endOfText int32
}

func newRoleColon(tokens tokenizer.Tokenizer, options Options) (format.Family, error) {
	v, err := format.NewVocabulary(tokens, options.Match)
	if err != nil {
		return nil, err
	}
	r := &roleColon{Profile: format.Profile{Vocabulary: v, Stop: renderer.Stop{Strings: []string{nextUser}},
		History: format.Kept}, endOfText: -1}
	for _, t := range []struct {
		name string
		set  func(id int32)
	}{
		{options.Begin, func(id int32) { r.Begin = []int32{id} }},
		{options.End, func(id int32) { r.endOfText = id }},
	} {
		if t.name == "" {
			continue
		}
		id, ok := tokens.Special(t.name)
		if !ok {
			return nil, fmt.Errorf("the tokenizer has no token %s, which should begin or end its texts", t.name)
		}
		t.set(id)
	}
	return r, nil
}

// Write implements format.Family.
func (r *roleColon) Write(out *format.Writer, at format.Place) error {
	m := at.Message()
	text, err := format.PlainText(m)
	if err != nil {
		return err
	}
	r.head(out, at)
	out.Text(" " + text + separator).Cut()
	return nil
}

// head writes a message's header, unless the reply before it ends with the header.
func (r *roleColon) head(out *format.Writer, at format.Place) {
	if at.Message().Role == chat.RoleUser && at.Follows(chat.RoleAssistant) {
		before := at
		before.Index--
		if r.endsInUserHeader(before.Message()) {
			out.Body()
			return
		}
	}
	out.Text(pyjson.Capitalize(at.Message().Role) + ":").Body()
}

// endsInUserHeader reports whether a sampled reply ends with the header of the user's message.
func (r *roleColon) endsInUserHeader(m chat.Message) bool {
	if m.Sampled == nil {
		return false
	}
	text, err := r.Tokens.Decode(m.Sampled)
	return err == nil && strings.HasSuffix(text, nextUser)
}

// Close implements format.Closer: the header of the user's next message, with which the model ends its reply.
func (r *roleColon) Close(out *format.Writer, at format.Place) {
	if at.Message().Role == chat.RoleAssistant {
		out.Text(strings.TrimPrefix(nextUser, separator)).Cut()
	}
}

// Open implements format.Family.
func (r *roleColon) Open(out *format.Writer, _ format.Place) { out.Text("Assistant:") }

// WriteSampled implements format.Family.
func (r *roleColon) WriteSampled(out *format.Writer, at format.Place) bool {
	m := at.Message()
	asks := r.endsInUserHeader(m)
	if asks && !at.Precedes(chat.RoleUser) {
		return false
	}
	out.Put(m.Sampled...)
	if !asks {
		out.Text(separator)
	}
	return true
}

// Read implements format.Family. White space that the format puts around text does not count as content.
func (r *roleColon) Read(sampled []int32) (renderer.Parsed, error) {
	ended := len(sampled) > 0 && sampled[len(sampled)-1] == r.endOfText
	if ended {
		sampled = sampled[:len(sampled)-1]
	}
	text, err := r.Tokens.Decode(sampled)
	if err != nil {
		return renderer.Parsed{}, err
	}
	stops := strings.Count(text, nextUser)
	text, _, _ = strings.Cut(text, nextUser)
	parsed := renderer.Parsed{Message: chat.Message{Content: strings.TrimSuffix(strings.TrimPrefix(text, " "), separator)}}
	switch {
	case stops > 1, stops == 1 && ended:
		parsed.Ending, parsed.Problem = renderer.Malformed, "the reply continues after the user's turn has begun"
	case ended:
		parsed.Ending = renderer.Ended
	case stops == 0:
		parsed.Ending = renderer.Truncated
	}
	return parsed, nil
}

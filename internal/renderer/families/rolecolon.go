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
	// separator stands after each message.
	separator = "\n\n"
	// nextUser is what a reply stops at: the header of the user's next message.
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
// A reply ends where the user's next message begins, so that header is sampled, too: when the user does
// speak next, the next prompt extends it. When somebody else does, the reply is written anew.
type roleColon struct {
	format.Profile
	// endOfText is a token that ends a reply as well; negative for none.
	endOfText int32
}

func newRoleColon(tokens tokenizer.Tokenizer, options Options) (format.Family, error) {
	v, err := format.NewVocabulary(tokens, options.Match)
	if err != nil {
		return nil, err
	}
	r := &roleColon{Profile: format.Profile{Vocabulary: v, Stop: renderer.Stop{Strings: []string{nextUser}}, History: format.Kept}, endOfText: -1}
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
			return nil, fmt.Errorf("the tokenizer has no token %s, which is to begin or end its texts", t.name)
		}
		t.set(id)
	}
	return r, nil
}

// Write implements family.
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

// head writes a message's header, if the reply before did not sample it already.
func (r *roleColon) head(out *format.Writer, at format.Place) {
	if at.Message().Role == chat.RoleUser && at.Follows(chat.RoleAssistant) {
		before := at
		before.Index--
		if r.asksUser(before.Message()) {
			out.Body()
			return
		}
	}
	out.Text(pyjson.Capitalize(at.Message().Role) + ":").Body()
}

// asksUser reports whether a reply ends in the user's header.
func (r *roleColon) asksUser(m chat.Message) bool {
	if m.Sampled == nil {
		return false
	}
	text, err := r.Tokens.Decode(m.Sampled)
	return err == nil && strings.HasSuffix(text, nextUser)
}

// Open implements family.
func (r *roleColon) Open(out *format.Writer, _ format.Place) { out.Text("Assistant:") }

// WriteSampled implements family.
func (r *roleColon) WriteSampled(out *format.Writer, at format.Place) bool {
	m := at.Message()
	asks := r.asksUser(m)
	if asks && !at.Precedes(chat.RoleUser) {
		return false
	}
	out.Put(m.Sampled...)
	if !asks {
		out.Text(separator)
	}
	return true
}

// Read implements family. White space that the format puts around text does not count as content.
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
		parsed.Ending, parsed.Problem = renderer.Malformed, "the reply goes on after the user's turn has begun"
	case ended:
		parsed.Ending = renderer.Ended
	case stops == 0:
		parsed.Ending = renderer.Truncated
	}
	return parsed, nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
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
	profile
	// endOfText is a token that ends a reply as well; negative for none.
	endOfText int32
}

func newRoleColon(tokens tokenizer.Tokenizer, options Options) (family, error) {
	v, err := newVocabulary(tokens, options.Match)
	if err != nil {
		return nil, err
	}
	r := &roleColon{profile: profile{vocabulary: v, stop: Stop{Strings: []string{nextUser}}, history: kept}, endOfText: -1}
	for _, t := range []struct {
		name string
		set  func(id int32)
	}{
		{options.Begin, func(id int32) { r.begin = []int32{id} }},
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

// write implements family.
func (r *roleColon) write(out *chunks, at place) error {
	m := at.message()
	text, err := plainText(m)
	if err != nil {
		return err
	}
	r.head(out, at)
	out.text(" " + text + separator).cut()
	return nil
}

// head writes a message's header, if the reply before did not sample it already.
func (r *roleColon) head(out *chunks, at place) {
	if at.message().Role == chat.RoleUser && at.after(chat.RoleAssistant) {
		before := at
		before.index--
		if r.asksUser(before.message()) {
			out.body()
			return
		}
	}
	out.text(pyjson.Capitalize(at.message().Role) + ":").body()
}

// asksUser says whether a reply ends in the user's header.
func (r *roleColon) asksUser(m chat.Message) bool {
	if m.Sampled == nil {
		return false
	}
	text, err := r.tokens.Decode(m.Sampled)
	return err == nil && strings.HasSuffix(text, nextUser)
}

// open implements family.
func (r *roleColon) open(out *chunks, _ place) { out.text("Assistant:") }

// again implements family.
func (r *roleColon) again(out *chunks, at place) bool {
	m := at.message()
	asks := r.asksUser(m)
	if asks && !at.before(chat.RoleUser) {
		return false
	}
	out.put(m.Sampled...)
	if !asks {
		out.text(separator)
	}
	return true
}

// read implements family. White space that the format puts around text does not count as content.
func (r *roleColon) read(sampled []int32) (Parsed, error) {
	ended := len(sampled) > 0 && sampled[len(sampled)-1] == r.endOfText
	if ended {
		sampled = sampled[:len(sampled)-1]
	}
	text, err := r.tokens.Decode(sampled)
	if err != nil {
		return Parsed{}, err
	}
	stops := strings.Count(text, nextUser)
	text, _, _ = strings.Cut(text, nextUser)
	parsed := Parsed{Message: chat.Message{Content: strings.TrimSuffix(strings.TrimPrefix(text, " "), separator)}}
	switch {
	case stops > 1, stops == 1 && ended:
		parsed.Ending, parsed.Problem = Malformed, "the reply goes on after the user's turn has begun"
	case ended:
		parsed.Ending = Ended
	case stops == 0:
		parsed.Ending = Truncated
	}
	return parsed, nil
}

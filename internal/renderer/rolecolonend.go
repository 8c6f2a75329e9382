// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// roleNames are what the format writes for roles. A tool has no place in it.
var roleNames = map[string]string{chat.RoleSystem: "System:", chat.RoleUser: "User:", chat.RoleAssistant: "Assistant:"}

// roleColonEnd writes messages as role_colon does, "User: text" and "Assistant: text<|end|>", but has replies
// end with a token, as the simulator's model was taught to. A prompt ends in "Assistant:". Header, text, end
// token and separator are encoded apart and put together.
//
// The next prompt always extends prompt and reply, provided that the message is handed back with its
// sampled ids. A reply without the end token is closed by one that nobody sampled.
type roleColonEnd struct{ profile }

func newRoleColonEnd(tokens tokenizer.Tokenizer, options Options) (family, error) {
	if options.End == "" {
		return nil, errors.New("the format needs the name of the token that ends a reply (Options.End)")
	}
	v, err := newVocabulary(tokens, options.Match, options.End)
	if err != nil {
		return nil, err
	}
	stop := Stop{Tokens: []int32{v.id(options.End)}}
	return &roleColonEnd{profile{vocabulary: v, stop: stop, end: options.End, history: kept}}, nil
}

// write implements family.
func (r *roleColonEnd) write(out *chunks, at place) error {
	m := at.message()
	header, ok := roleNames[m.Role]
	if !ok || len(m.Calls) > 0 || m.CallID != "" {
		return ErrUnsupported
	}
	text, err := plainText(m)
	if err != nil {
		return err
	}
	out.text(header).body()
	out.text(" " + text).cut()
	if m.Role == chat.RoleAssistant {
		out.token(r.end)
	}
	out.text(separator)
	return nil
}

// open implements family.
func (r *roleColonEnd) open(out *chunks, _ place) { out.text(roleNames[chat.RoleAssistant]) }

// again implements family.
func (r *roleColonEnd) again(out *chunks, at place) bool {
	r.profile.again(out, at)
	out.text(separator)
	return true
}

// read implements family. White space around the text does not count as content.
func (r *roleColonEnd) read(sampled []int32) (Parsed, error) {
	content, parsed := sampled, Parsed{Ending: Truncated}
	if at := slices.Index(sampled, r.id(r.end)); at >= 0 {
		content, parsed.Ending = sampled[:at], Stopped
		if at != len(sampled)-1 {
			parsed.Ending, parsed.Problem = Malformed, "the reply goes on after "+r.end
		}
	}
	text, err := r.tokens.Decode(content)
	if err != nil {
		return Parsed{}, fmt.Errorf("decoding its text: %w", err)
	}
	parsed.Message.Content = strings.TrimSpace(text)
	return parsed, nil
}

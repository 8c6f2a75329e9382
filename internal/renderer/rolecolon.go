// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// separator stands after each message.
const separator = "\n\n"

// roleNames are what the format writes for roles. A tool has no place in it.
var roleNames = map[string]string{RoleSystem: "System:", RoleUser: "User:", RoleAssistant: "Assistant:"}

// roleColon writes messages as "User: text" and "Assistant: text<|end|>", with a blank line after each. A
// prompt ends in "Assistant:", and a reply ends with the end token. Header, text, end token and separator
// are encoded apart and put together.
//
// The next prompt always extends prompt and reply, provided that the message is handed back with its
// sampled ids. A reply without the end token is closed by one that nobody sampled.
type roleColon struct {
	tokens tokenizer.Tokenizer
	// endName and end are the token that ends a reply.
	endName string
	end     int32
}

func newRoleColon(t tokenizer.Tokenizer, endName string) (Renderer, error) {
	end, ok := t.Special(endName)
	if !ok {
		return nil, fmt.Errorf("building renderer role_colon: the tokenizer has no %s", endName)
	}
	return &roleColon{tokens: t, endName: endName, end: end}, nil
}

// Stop implements Renderer.
func (r *roleColon) Stop() Stop { return Stop{Tokens: []int32{r.end}} }

// Prompt implements Renderer.
func (r *roleColon) Prompt(conversation Conversation) ([]int32, error) {
	if len(conversation.Tools) > 0 {
		return nil, fmt.Errorf("rendering tools: %w", ErrUnsupported)
	}
	var ids []int32
	for i, m := range conversation.Messages {
		header, ok := roleNames[m.Role]
		if !ok || len(m.Calls) > 0 || m.CallID != "" {
			return nil, fmt.Errorf("rendering message %d of role %q: %w", i, m.Role, ErrUnsupported)
		}
		ids = append(ids, r.tokens.Encode(header)...)
		ids = r.appendContent(ids, m)
		ids = append(ids, r.tokens.Encode(separator)...)
	}
	return append(ids, r.tokens.Encode(roleNames[RoleAssistant])...), nil
}

func (r *roleColon) appendContent(ids []int32, m Message) []int32 {
	content := m.Sampled
	if content == nil {
		content = r.tokens.Encode(" " + m.Content)
	}
	ids = append(ids, content...)
	if m.Role == RoleAssistant && !slices.Contains(m.Sampled, r.end) {
		ids = append(ids, r.end)
	}
	return ids
}

// Parse implements Renderer. White space around the text does not count as content.
func (r *roleColon) Parse(sampled []int32) (Parsed, error) {
	content, ending, problem := sampled, Truncated, ""
	if at := slices.Index(sampled, r.end); at >= 0 {
		content, ending = sampled[:at], Stopped
		if at != len(sampled)-1 {
			ending, problem = Malformed, "the reply goes on after "+r.endName
		}
	}
	text, err := r.tokens.Decode(content)
	if err != nil {
		return Parsed{}, fmt.Errorf("parsing reply: %w", err)
	}
	message := Message{Role: RoleAssistant, Content: strings.TrimSpace(text), Sampled: slices.Clone(sampled)}
	return Parsed{Message: message, Ending: ending, Problem: problem}, nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
)

// Parse implements renderer.Renderer.
func (r *Renderer) Parse(sampled []int32) (renderer.Parsed, error) {
	text, parsed, err := r.profile.DecodeReply("", sampled)
	if err != nil {
		return renderer.Parsed{}, fmt.Errorf("parsing reply: %w", err)
	}
	if parsed.Ending == renderer.Stopped && slices.Contains(r.foreign, sampled[len(sampled)-1]) {
		parsed.Ending = renderer.Ended
	}
	if parsed.Ending != renderer.Truncated {
		parsed = format.WithReply(parsed, r.read(text))
	}
	parsed.Message.Role, parsed.Message.Sampled = chat.RoleAssistant, slices.Clone(sampled)
	return parsed, nil
}

// read takes a reply apart.
func (r *Renderer) read(text string) format.Reply {
	thinking, rest, thinks := r.cutReasoning(text)
	found := format.Reply{Text: rest}
	if r.calls != nil {
		found = r.calls.Read(rest)
	}
	if !thinks {
		return found
	}
	parts := format.AppendPart([]chat.Part{}, thinking, true)
	if found.Parts != nil {
		parts = append(parts, found.Parts...)
	} else {
		parts = format.AppendPart(parts, found.Text, false)
	}
	found.Parts = parts
	return found
}

// cutReasoning splits a reply that begins with reasoning. The prompt may have opened the block. The line breaks around
// the tags are the format's.
func (r *Renderer) cutReasoning(text string) (thinking, rest string, ok bool) {
	tags := r.traits.Reasoning
	if tags[0] == "" {
		return "", text, false
	}
	before, after, closed := strings.Cut(text, tags[1])
	if !closed {
		return "", text, false
	}
	if lead, inner, opens := strings.Cut(before, tags[0]); opens {
		if strings.TrimSpace(lead) != "" {
			return "", text, false
		}
		before = inner
	}
	return strings.Trim(before, "\n"), strings.TrimLeft(after, "\n"), true
}

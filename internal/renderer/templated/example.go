// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// Example implements renderer.Renderer. It finds no parts of messages. It refuses a conversation whose beginning the
// template writes differently once more messages follow.
func (r *Renderer) Example(conversation renderer.Conversation, parts bool) (renderer.Example, error) {
	if parts {
		return renderer.Example{}, fmt.Errorf("finding parts of messages in what a chat template writes: %w",
			renderer.ErrUnsupported)
	}
	if conversation.Tools != nil && !r.traits.DeclaresTools {
		return renderer.Example{}, r.toolsError()
	}
	conversation.Messages, conversation.Prefill, conversation.Rendered = slices.Clone(conversation.Messages), "", nil
	for i := range conversation.Messages {
		conversation.Messages[i].Sampled, conversation.Messages[i].Reply = nil, 0
	}
	whole, err := r.write(conversation, false)
	if err != nil || len(conversation.Messages) == 0 {
		return renderer.Example{}, err
	}
	example := renderer.Example{IDs: r.config.Tokens.AppendEncodeWhere(nil, whole.text, whole.fromTemplate)}
	messages, before := conversation.Messages, 0
	for i, m := range messages {
		place, end, err := r.placeOf(conversation, whole, i, before)
		if err != nil {
			return renderer.Example{}, fmt.Errorf("finding message %d of role %q in what the chat template writes: %w", i,
				m.Role, err)
		}
		before = end
		example.Written = append(example.Written, renderer.Written{Message: i,
			Output: renderer.Extent{Begin: r.idAt(whole, example.IDs, place.Begin), End: r.idAt(whole, example.IDs, place.End)}})
	}
	last := len(messages) - 1
	if messages[last].Role != chat.RoleAssistant {
		return example, nil
	}
	conversation.Messages = messages[:last]
	prompt, err := r.prompt(conversation, nil)
	if err != nil {
		return renderer.Example{}, err
	}
	if len(example.IDs) >= len(prompt) && slices.Equal(example.IDs[:len(prompt)], prompt) {
		example.Given = len(prompt)
	}
	return example, nil
}

// placeOf returns the place of a message's content, including the mark of its end, and the end of the message. The
// messages before it end at before.
func (r *Renderer) placeOf(conversation renderer.Conversation, whole written, i, before int) (place renderer.Extent,
	end int, err error) {
	messages := conversation.Messages
	conversation.Messages = messages[:i+1]
	until, err := r.write(conversation, false)
	if err != nil {
		return place, 0, err
	}
	if end = len(until.text); end < before || !strings.HasPrefix(whole.text, until.text) {
		return place, 0, fmt.Errorf("it writes the message in another way once others follow: %w", renderer.ErrUnsupported)
	}
	place = renderer.Extent{Begin: end, End: end}
	for _, data := range whole.data {
		if data.End > before && data.Begin < end {
			place.Begin = max(before, data.Begin)
			break
		}
	}
	if messages[i].Role == chat.RoleAssistant {
		conversation.Messages = messages[:i]
		opened, err := r.write(conversation, true)
		if err != nil {
			return place, 0, err
		}
		place.Begin = max(before, commonPrefix(opened.text, until.text))
	}
	for _, token := range r.tokensOf(until) {
		if token.End > place.Begin && slices.Contains(r.traits.Ends, until.text[token.Begin:token.End]) {
			place.End = token.End
		}
	}
	return place, end, nil
}

// idAt returns the index of the id at a place of a text: the id that begins there or covers it.
func (r *Renderer) idAt(whole written, ids []int32, at int) int {
	part := r.config.Tokens.AppendEncodeWhere(nil, whole.text[:at], whole.fromTemplate)
	n := 0
	for n < len(part) && n < len(ids) && part[n] == ids[n] {
		n++
	}
	return n
}

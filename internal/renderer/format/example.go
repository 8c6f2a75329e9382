// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// Closer is a Family that writes something after the last message of an example, which belongs to that message.
type Closer interface {
	Close(out *Writer, at Place)
}

// Example implements renderer.Renderer.
func (c *familyRenderer) Example(conversation renderer.Conversation, parts bool) (renderer.Example, error) {
	conversation.Messages = asText(conversation.Messages)
	messages, err := c.family.Arrange(conversation)
	if err != nil {
		return renderer.Example{}, err
	}
	if len(messages) == 0 {
		return renderer.Example{}, nil
	}
	out := NewWriter(c.family.Base(), nil)
	if parts {
		out.texts = &[]writtenText{}
	}
	written, err := c.example(out, messages)
	if err != nil {
		return renderer.Example{}, err
	}
	for i := range written {
		// Arranging changes only the front, up to the system message.
		written[i].Message = i + len(conversation.Messages) - len(messages)
	}
	example := renderer.Example{IDs: out.IDs, Written: written}
	if example.Given, err = c.given(conversation, out.IDs); err != nil {
		return renderer.Example{}, err
	}
	if parts {
		err = c.locateParts(messages, example, *out.texts)
	}
	return example, err
}

// asText returns messages without sampled ids.
func asText(messages []chat.Message) []chat.Message {
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Sampled, messages[i].Reply = nil, 0
	}
	return messages
}

// example writes arranged messages, the last one as a reply, and returns their places.
func (c *familyRenderer) example(out *Writer, messages []chat.Message) ([]renderer.Written, error) {
	base := c.family.Base()
	written := make([]renderer.Written, len(messages))
	at := base.Place(messages)
	at.TurnStart = base.Place(messages[:len(messages)-1]).TurnStart
	for at.Index = range messages {
		out.end = 0
		if err := c.family.Write(out, at); err != nil {
			return nil, fmt.Errorf("rendering message %d of role %q: %w", at.Index, at.Message().Role, err)
		}
		out.Cut()
		if closer, ok := c.family.(Closer); ok && at.IsLast() {
			closer.Close(out, at)
		}
		end := out.end
		if end == 0 {
			end = len(out.IDs)
		}
		written[at.Index].Output = renderer.Extent{Begin: out.Output, End: end}
	}
	return written, nil
}

// given returns how many of an example's ids the prompt of its last message has.
func (c *familyRenderer) given(conversation renderer.Conversation, ids []int32) (int, error) {
	last := len(conversation.Messages) - 1
	if last < 0 || conversation.Messages[last].Role != chat.RoleAssistant {
		return 0, nil
	}
	conversation.Messages, conversation.Prefill, conversation.Rendered = conversation.Messages[:last], "", nil
	prompt, err := c.Prompt(conversation)
	switch {
	case err != nil:
		return 0, err
	case len(ids) >= len(prompt) && slices.Equal(ids[:len(prompt)], prompt):
		return len(prompt), nil
	case c.family.Base().NoReasoning:
		return 0, fmt.Errorf("the last reply reasons, and the format's prompts tell the model not to; remove the reasoning, "+
			"or take the renderer that thinks: %w", renderer.ErrUnsupported)
	default:
		return 0, nil
	}
}

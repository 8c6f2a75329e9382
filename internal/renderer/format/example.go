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
	if err := c.compareWithPrompt(&example, conversation); err != nil {
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

// compareWithPrompt compares an example with the prompt for its last message, and sets Given or Contradicts.
func (c *familyRenderer) compareWithPrompt(example *renderer.Example, conversation renderer.Conversation) error {
	last := len(conversation.Messages) - 1
	if last < 0 || conversation.Messages[last].Role != chat.RoleAssistant {
		return nil
	}
	conversation.Messages, conversation.Prefill, conversation.Rendered = conversation.Messages[:last], "", nil
	prompt, err := c.Prompt(conversation)
	if err != nil {
		return err
	}
	if len(example.IDs) >= len(prompt) && slices.Equal(example.IDs[:len(prompt)], prompt) {
		example.Given = len(prompt)
	} else {
		example.Contradicts = c.family.Base().NoReasoning
	}
	return nil
}

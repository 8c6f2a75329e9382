// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// family is the format of one family of models. It embeds a profile, which has the methods that most
// families share.
type family interface {
	// arrange gives the messages as they are written: with the tools declared and the format's own system
	// messages. What is arranged already stays as it is.
	arrange(conversation Conversation) ([]chat.Message, error)
	// write writes a message: its header, body() and its output.
	write(out *chunks, at place) error
	// open writes what the assistant's reply at a place begins after.
	open(out *chunks, at place)
	// again writes the sampled ids of a message, unless the format rewrites them.
	again(out *chunks, at place) bool
	// read parses a reply.
	read(sampled []int32) (Parsed, error)
	// base is the profile.
	base() *profile
}

// profile is what families have in common, and what they differ in as data.
type profile struct {
	*vocabulary
	// begin stands before every conversation.
	begin []int32
	stop  Stop
	// end is the token that ends a reply whose sampled ids have no stop.
	end     string
	history history
	// turn gives the index that the assistant's current turn begins at; nil for after the last message of
	// the user.
	turn func(messages []chat.Message) int
}

// history is what a format does to the sampled ids of earlier replies. The reference always writes them
// anew from their text; here, ids that the format has no reason to rewrite stay, as training on a
// conversation as one sequence depends on it.
type history uint8

const (
	// rewritten: every earlier reply is written otherwise than it was sampled.
	rewritten history = iota
	// currentTurn: replies of the turn under way (since the user's last message) stay.
	currentTurn
	// reasoningDropped: as currentTurn, and replies without reasoning stay as well.
	reasoningDropped
	// kept: all replies stay.
	kept
)

func (p *profile) base() *profile { return p }

// arrange implements family for formats that have no words for tools.
func (p *profile) arrange(conversation Conversation) ([]chat.Message, error) {
	if conversation.Tools != nil {
		return nil, fmt.Errorf("declaring tools: %w", ErrUnsupported)
	}
	return conversation.Messages, nil
}

// again implements family.
func (p *profile) again(out *chunks, at place) bool {
	m := at.message()
	if !p.stays(m, at) {
		return false
	}
	out.put(m.Sampled...)
	if !slices.ContainsFunc(m.Sampled, p.isStop) {
		out.token(p.end)
	}
	return true
}

func (p *profile) stays(m chat.Message, at place) bool {
	switch p.history {
	case kept:
		return true
	case currentTurn:
		return at.index >= at.turn
	case reasoningDropped:
		return at.index >= at.turn || !hasReasoning(m) && !slices.Contains(m.Sampled, p.id(thinkOpen))
	default:
		return false
	}
}

func (p *profile) isStop(id int32) bool { return slices.Contains(p.stop.Tokens, id) }

// place is a message among the others, or the reply that follows them.
type place struct {
	messages []chat.Message
	index    int
	// lastUser is the index of the user's last message, or -1.
	lastUser int
	// turn is the index that the assistant's current turn begins at.
	turn int
}

func (p *profile) place(messages []chat.Message) place {
	at := place{messages: messages, lastUser: -1}
	for i, m := range messages {
		if m.Role == chat.RoleUser {
			at.lastUser = i
		}
	}
	at.turn = at.lastUser + 1
	if p.turn != nil {
		at.turn = p.turn(messages)
	}
	return at
}

func (a place) message() chat.Message { return a.messages[a.index] }

// isLast says whether no message follows.
func (a place) isLast() bool { return a.index >= len(a.messages)-1 }

// after says whether the message before has a role.
func (a place) after(role string) bool {
	return a.index > 0 && a.messages[a.index-1].Role == role
}

// before says whether the next message has a role.
func (a place) before(role string) bool {
	return a.index+1 < len(a.messages) && a.messages[a.index+1].Role == role
}

// familyRenderer is the Renderer of a family.
type familyRenderer struct{ family family }

// Stop implements Renderer.
func (c *familyRenderer) Stop() Stop { return c.family.base().stop }

// Parse implements Renderer.
func (c *familyRenderer) Parse(sampled []int32) (Parsed, error) {
	parsed, err := c.family.read(sampled)
	if err != nil {
		return Parsed{}, fmt.Errorf("parsing reply: %w", err)
	}
	parsed.Message.Role, parsed.Message.Sampled = chat.RoleAssistant, slices.Clone(sampled)
	return parsed, nil
}

// Prompt implements Renderer.
func (c *familyRenderer) Prompt(conversation Conversation) ([]int32, error) {
	messages, err := c.family.arrange(conversation)
	if err != nil {
		return nil, err
	}
	out, err := c.prompt(messages)
	if err != nil {
		return nil, err
	}
	if conversation.Prefill == "" {
		return out.ids, nil
	}
	return out.vocabulary.tokens.AppendEncode(out.ids, conversation.Prefill, tokenizer.Specials), nil
}

// prompt writes arranged messages up to where the reply begins.
func (c *familyRenderer) prompt(messages []chat.Message) (*chunks, error) {
	base := c.family.base()
	out := &chunks{vocabulary: base.vocabulary, ids: slices.Clone(base.begin)}
	at := base.place(messages)
	for at.index = range messages {
		if err := c.write(out, at); err != nil {
			return nil, err
		}
	}
	at.index = len(messages)
	c.family.open(out, at)
	return out.cut(), nil
}

// write writes a message: as it was sampled, if it was and the format lets it stand.
func (c *familyRenderer) write(out *chunks, at place) error {
	m := at.message()
	if m.Role == chat.RoleAssistant && m.Sampled != nil {
		written := len(out.ids)
		c.family.open(out, at)
		if out.body(); c.family.again(out, at) {
			out.cut()
			return nil
		}
		out.ids = out.ids[:written]
	}
	if err := c.family.write(out, at); err != nil {
		return fmt.Errorf("rendering message %d of role %q: %w", at.index, m.Role, err)
	}
	out.cut()
	return nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package format has the common parts of the formats of model families: how a conversation becomes a prompt, which
// sampled ids stay in it, how a reply is taken apart, and how tools are declared. Package families builds on it.
//
// A prompt consists of pieces that are tokenised apart, as the reference does it: the tokens that frame a message are
// written by their ids, and the content of a message is text, even if it spells the name of a special token.
package format

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Family is the format of one family of models. It embeds a Profile, which has the methods that most families
// share.
type Family interface {
	// Arrange returns the messages that are written: with the tools declared, and with the format's own system
	// messages.
	Arrange(conversation renderer.Conversation) ([]chat.Message, error)
	// Write writes the message at a place: its header, then Writer.Body, then its content.
	Write(out *Writer, at Place) error
	// Open writes the header that the assistant's reply at a place follows.
	Open(out *Writer, at Place)
	// WriteSampled writes the sampled ids of the message at a place and returns true, unless the format rewrites
	// them.
	WriteSampled(out *Writer, at Place) bool
	// Read parses a reply.
	Read(sampled []int32) (renderer.Parsed, error)
	// Base returns the profile.
	Base() *Profile
}

// Profile has the common parts of families, and their differences as data.
type Profile struct {
	*Vocabulary
	// Begin are the ids that every conversation begins with.
	Begin []int32
	Stop  renderer.Stop
	// End is the token that ends a reply whose sampled ids have no stop.
	End     string
	History History
	// NoReasoning means that prompts tell the model not to reason: they close the block of reasoning.
	NoReasoning bool
	// TurnStart returns the index at which the assistant's current turn begins. If it is nil, the turn begins after
	// the user's last message.
	TurnStart func(messages []chat.Message) int
}

// History is a format's treatment of the sampled ids of earlier replies. The reference always writes them again from
// their text. Here, ids that the format has no reason to rewrite stay, since training on a conversation as one sequence
// depends on it.
type History uint8

const (
	// Rewritten means that every earlier reply is written differently from the sampled reply.
	Rewritten History = iota
	// CurrentTurn means that the replies of the current turn, which began at Place.TurnStart, stay.
	CurrentTurn
	// ReasoningDropped means that, in addition to CurrentTurn, replies without reasoning stay.
	ReasoningDropped
	// Kept means that all replies stay.
	Kept
)

// Base implements Family.
func (p *Profile) Base() *Profile { return p }

// Arrange implements Family for formats that cannot declare tools.
func (p *Profile) Arrange(conversation renderer.Conversation) ([]chat.Message, error) {
	if conversation.Tools != nil {
		return nil, renderer.ErrTools
	}
	return conversation.Messages, nil
}

// WriteSampled implements Family.
func (p *Profile) WriteSampled(out *Writer, at Place) bool {
	m := at.Message()
	if !p.stays(m, at) {
		return false
	}
	out.Put(m.Sampled...)
	if !slices.ContainsFunc(m.Sampled, p.IsStop) {
		out.Token(p.End)
	}
	return true
}

// stays reports whether the sampled ids of a message are written unchanged.
func (p *Profile) stays(m chat.Message, at Place) bool {
	switch p.History {
	case Kept:
		return true
	case CurrentTurn:
		return at.Index >= at.TurnStart
	case ReasoningDropped:
		return at.Index >= at.TurnStart || !HasReasoning(m) && !slices.Contains(m.Sampled, p.ID(ThinkOpen))
	default:
		return false
	}
}

// IsStop reports whether a token ends a reply.
func (p *Profile) IsStop(id int32) bool { return slices.Contains(p.Stop.Tokens, id) }

// Place is the position of a message in a conversation, or of the reply that follows all messages.
type Place struct {
	Messages []chat.Message
	Index    int
	// LastUser is the index of the user's last message, or -1.
	LastUser int
	// TurnStart is the index at which the assistant's current turn begins.
	TurnStart int
}

// Place returns the place of the first message.
func (p *Profile) Place(messages []chat.Message) Place {
	at := Place{Messages: messages, LastUser: -1}
	for i, m := range messages {
		if m.Role == chat.RoleUser {
			at.LastUser = i
		}
	}
	at.TurnStart = at.LastUser + 1
	if p.TurnStart != nil {
		at.TurnStart = p.TurnStart(messages)
	}
	return at
}

// Message returns the message at the place.
func (a Place) Message() chat.Message { return a.Messages[a.Index] }

// IsLast reports whether no message follows.
func (a Place) IsLast() bool { return a.Index >= len(a.Messages)-1 }

// Follows reports whether the message before has a role.
func (a Place) Follows(role string) bool {
	return a.Index > 0 && a.Messages[a.Index-1].Role == role
}

// Precedes reports whether the next message has a role.
func (a Place) Precedes(role string) bool {
	return a.Index+1 < len(a.Messages) && a.Messages[a.Index+1].Role == role
}

// familyRenderer is the renderer of a family.
type familyRenderer struct{ family Family }

// New returns the renderer of a family.
func New(f Family) renderer.Renderer { return &familyRenderer{family: f} }

// FamilyOf returns the family of a renderer that New has made; nil for any other renderer.
func FamilyOf(r renderer.Renderer) Family {
	if made, ok := r.(*familyRenderer); ok {
		return made.family
	}
	return nil
}

// Stop implements renderer.Renderer.
func (c *familyRenderer) Stop() renderer.Stop { return c.family.Base().Stop }

// Parse implements renderer.Renderer.
func (c *familyRenderer) Parse(sampled []int32) (renderer.Parsed, error) {
	parsed, err := c.family.Read(sampled)
	if err != nil {
		return renderer.Parsed{}, fmt.Errorf("parsing reply: %w", err)
	}
	parsed.Message.Role, parsed.Message.Sampled = chat.RoleAssistant, slices.Clone(sampled)
	return parsed, nil
}

// Prompt implements renderer.Renderer.
func (c *familyRenderer) Prompt(conversation renderer.Conversation) ([]int32, error) {
	messages, err := c.family.Arrange(conversation)
	if err != nil {
		return nil, err
	}
	out, err := c.prompt(messages, conversation.Rendered)
	if err != nil {
		return nil, err
	}
	if last := conversation.Rendered; last != nil {
		last.IDs, last.Pieces = out.IDs, out.pieces
	}
	if conversation.Prefill == "" {
		return out.IDs, nil
	}
	return out.vocabulary.Tokens.AppendEncode(out.IDs, conversation.Prefill, tokenizer.Specials), nil
}

// prompt writes arranged messages up to the beginning of the reply.
func (c *familyRenderer) prompt(messages []chat.Message, last *renderer.Rendered) (*Writer, error) {
	base := c.family.Base()
	out := NewWriter(base, last)
	at := base.Place(messages)
	for at.Index = range messages {
		if err := c.write(out, at); err != nil {
			return nil, err
		}
	}
	at.Index = len(messages)
	c.family.Open(out, at)
	return out.Cut(), nil
}

// write writes a message, as it was sampled if the format allows it.
func (c *familyRenderer) write(out *Writer, at Place) error {
	m := at.Message()
	if m.Role == chat.RoleAssistant && m.Sampled != nil {
		written, pieces := len(out.IDs), len(out.pieces)
		c.family.Open(out, at)
		if out.Body(); c.family.WriteSampled(out, at) {
			out.Cut()
			return nil
		}
		out.IDs, out.pieces = out.IDs[:written], out.pieces[:pieces]
	}
	if err := c.family.Write(out, at); err != nil {
		return fmt.Errorf("rendering message %d of role %q: %w", at.Index, m.Role, err)
	}
	out.Cut()
	return nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package renderer is the contract of renderers. A renderer turns a conversation into the token ids that a model
// was taught to read, and sampled ids back into messages and tool calls. It knows neither environments nor Tinker.
//
// A conversation that continues should extend the sampled tokens, token by token: then all its turns train as one
// sequence. Text that is rendered again does not always give the sampled ids. Therefore a message carries its ids, and
// a renderer whose format keeps history unchanged puts them into the next prompt. Formats that rewrite history, for
// example by dropping the reasoning of earlier turns, rewrite it here too.
//
// The packages below: families has the formats of model families and builds a renderer by its name, format has the
// common parts of these formats, load builds the renderer of a run, chatjson reads and writes conversations as JSON,
// and pyjson and tsdecl write JSON and TypeScript as the models' templates do.
package renderer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Conversation is the conversation that a model is asked to continue.
type Conversation struct {
	Messages []chat.Message
	// Tools are the tools that the reply may call. If Tools is nil, the prompt does not mention tools; an empty list may
	// be mentioned.
	Tools []chat.Tool
	// Prefill is text that the reply is made to begin with. The caller is trusted: names of special tokens in it
	// are those tokens.
	Prefill string
	// Rendered is the conversation's last prompt; nil if there is none. Prompt replaces its content, and tokenises only
	// text that the last prompt does not have.
	Rendered *Rendered
}

// Rendered is a prompt in the pieces of text that were tokenised apart. It is not safe for concurrent use. The zero
// value stands for a conversation without a prompt.
type Rendered struct {
	// IDs are the ids of the prompt. A caller that has the same ids in another slice may set IDs to that slice.
	IDs    []int32
	Pieces []Piece
}

// Piece is the place of a text's ids in a prompt.
type Piece struct {
	Text       [sha256.Size]byte
	Begin, End int
}

// Find returns the ids of a text that the prompt has, at the index or elsewhere. A conversation that continues has most
// texts at the same index.
func (r *Rendered) Find(text [sha256.Size]byte, index int) (ids []int32, ok bool) {
	if r == nil {
		return nil, false
	}
	if index >= len(r.Pieces) || r.Pieces[index].Text != text {
		index = slices.IndexFunc(r.Pieces, func(p Piece) bool { return p.Text == text })
	}
	if index < 0 {
		return nil, false
	}
	return r.IDs[r.Pieces[index].Begin:r.Pieces[index].End], true
}

// Stop is how a reply ends. Only one of the fields is set, since the API accepts no mixture.
type Stop struct {
	Strings []string
	Tokens  []int32
}

// Ending is the end of a reply.
type Ending uint8

// A reply has one of these endings.
const (
	// Stopped replies end with the stop, once.
	Stopped Ending = iota
	// Truncated replies have no stop.
	Truncated
	// Malformed replies ended, but break the format.
	Malformed
	// Ended replies end with the model's end of text, where the format expects another stop.
	Ended
)

// Parsed is a reply that has been read.
type Parsed struct {
	// Message is the assistant's, with its sampled ids. Its Content is the text of the reply, whatever the ending; for a
	// truncated reply it is everything that was sampled.
	Message chat.Message
	Ending  Ending
	// Unparsed are the calls of tools that could not be read. A reply with one is Malformed.
	Unparsed []UnparsedCall
	// Problem describes the error of a malformed reply, for people and for the policy.
	Problem string
}

// UnparsedCall is text that begins like a call of a tool but is not a valid call.
type UnparsedCall struct {
	Text    string
	Problem string
}

// Renderer is one model family's format. It is safe for concurrent use.
type Renderer interface {
	// Prompt returns the ids of a conversation up to the beginning of the assistant's reply. It returns an ErrUnsupported
	// for a conversation that the format cannot express.
	Prompt(conversation Conversation) ([]int32, error)
	// Stop returns the end of a reply.
	Stop() Stop
	// Parse reads sampled ids. It fails only if the vocabulary does not have one of them.
	Parse(sampled []int32) (Parsed, error)
	// Example returns a whole conversation to train on, written from the text of its messages: sampled ids are ignored.
	// With parts, it also finds the parts of messages. It returns an ErrUnsupported for a conversation that the format
	// cannot express.
	Example(conversation Conversation, parts bool) (Example, error)
}

// ErrUnsupported reports that a renderer's format cannot express something.
var ErrUnsupported = errors.New("the renderer's format has no place for it")

// ErrTools is the ErrUnsupported of a format that cannot declare tools.
var ErrTools = fmt.Errorf("declaring tools: %w", ErrUnsupported)

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package renderer turns conversations into the token ids that a model was taught to read, and sampled ids
// back into messages and tool calls. It knows neither environments nor Tinker.
//
// A conversation that goes on should extend what was sampled before, token by token: then all its turns
// train as one sequence. Text that is rendered again need not give the ids that were sampled, so a message
// carries them, and a renderer whose format keeps history as it was puts them into the next prompt
// unchanged. Formats that rewrite history, by dropping the reasoning of earlier turns, say, do so here, too.
//
// A prompt is made of pieces that are tokenised apart and put together, as the reference does it: tokens that
// frame a message are put in by their ids, and what a message says is text, whatever it spells. See chat.go
// for how a format is composed; a family of models is one file, and its variants are rows of variants.go.
package renderer

import (
	"errors"
	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Conversation is what a reply is asked for.
type Conversation struct {
	Messages []chat.Message
	// Tools that may be called. Nil says nothing of tools; a format may also have words for an empty list.
	Tools []chat.Tool
	// Prefill is text that the reply is made to begin with. It comes from whoever asks, so names of special
	// tokens in it are those tokens.
	Prefill string
}

// Stop is what ends a reply; one of the two, as the API takes no mixture.
type Stop struct {
	Strings []string
	Tokens  []int32
}

// Ending is how a reply ended.
type Ending uint8

// The endings.
const (
	// Stopped replies end with the stop, once.
	Stopped Ending = iota
	// Truncated replies have no stop.
	Truncated
	// Malformed replies ended, but break the format.
	Malformed
	// Ended replies end with the model's end of text, where the format waits for another stop.
	Ended
)

// Parsed is a reply.
type Parsed struct {
	// Message of the assistant, with its sampled ids. Content is as much text as there is, whatever the
	// ending; that of a truncated reply is all of it as it was written.
	Message chat.Message
	Ending  Ending
	// Unparsed are calls of tools that could not be read. A reply with one is Malformed.
	Unparsed []UnparsedCall
	// Problem with a malformed reply, for people and for the policy.
	Problem string
}

// UnparsedCall is text that begins like a call of a tool and is none.
type UnparsedCall struct {
	Text    string
	Problem string
}

// Renderer is one model family's format. It is safe for concurrent use.
type Renderer interface {
	// Prompt gives the ids of a conversation up to where the assistant's reply begins. What the format
	// cannot express is ErrUnsupported.
	Prompt(conversation Conversation) ([]int32, error)
	// Stop is what ends a reply.
	Stop() Stop
	// Parse reads sampled ids. An error means ids that the vocabulary does not have.
	Parse(sampled []int32) (Parsed, error)
}

// ErrUnsupported says that a renderer's format has no place for something.
var ErrUnsupported = errors.New("the renderer's format has no place for it")

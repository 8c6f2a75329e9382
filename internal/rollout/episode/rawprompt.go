// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/stoptext"
)

// rawNode returns a request whose reply continues a text or tokens.
func (d *driver) rawNode(asked environment.Completion) (*node, error) {
	n := &node{role: asked.Role}
	texts := renderer.TextsOf(d.episode.player.Renderer)
	switch {
	case asked.Tokens != nil:
		n.request.Prompt = slices.Clone(asked.Tokens)
		n.parent = d.agent.extendedTokens(asked.Role, asked.Tokens)
	case texts == nil:
		return nil, &environment.RequestError{Message: "The model's format has no text without messages. Send messages."}
	default:
		if n.parent = d.agent.extendedText(asked.Role, asked.Text); n.parent != nil {
			said := n.parent.tokens[:n.parent.through]
			n.request.Prompt = append(slices.Clone(said), texts.Encode(asked.Text[len(n.parent.text):])...)
		} else {
			n.request.Prompt = texts.Encode(asked.Text)
		}
		n.own = []chat.Message{{Role: chat.RoleUser, Content: asked.Text}}
	}
	if len(n.request.Prompt) == 0 {
		return nil, &environment.RequestError{Message: "The prompt is empty."}
	}
	if texts != nil && asked.Tokens != nil {
		text, err := texts.Decode(n.request.Prompt)
		if err != nil {
			return nil, &environment.RequestError{Message: "The prompt has a token that the model does not have."}
		}
		n.own = []chat.Message{{Role: chat.RoleUser, Content: text}}
	}
	return n, nil
}

// recordRaw reads a reply to a raw prompt.
func (d *driver) recordRaw(_ environment.Completion, n *node, sample Sample,
	stops []string) (string, meaning, error) {
	n.sample, n.stop = sample, stopStop
	if !sample.Stopped {
		n.stop = stopLength
	}
	n.through = len(n.request.Prompt) + len(sample.Tokens)
	texts := renderer.TextsOf(d.episode.player.Renderer)
	if texts == nil {
		return "", meaning{}, nil
	}
	said := func(tokens []int32) (string, error) { return texts.Decode(withoutLast(tokens, n.request.Stop.Tokens)) }
	cut, stop, err := cutSample(sample, stops, said)
	if err != nil {
		return "", meaning{}, err
	}
	text, err := said(cut.Tokens)
	if err != nil {
		return "", meaning{}, err
	}
	n.sample = cut
	if stop == "" {
		n.through = len(n.request.Prompt) + len(withoutLast(cut.Tokens, n.request.Stop.Tokens))
		n.text = n.promptText() + text
	} else {
		n.stop = stopStop
		_, at := stoptext.First(text, []string{stop})
		text = text[:at]
	}
	n.reply = chat.Message{Role: chat.RoleAssistant, Content: text}
	n.kept = n.reply
	return stop, meaning{}, nil
}

// withoutLast returns tokens without the stop token at their end, if there is one.
func withoutLast(tokens, stops []int32) []int32 {
	if last := len(tokens) - 1; last >= 0 && slices.Contains(stops, tokens[last]) {
		return tokens[:last]
	}
	return tokens
}

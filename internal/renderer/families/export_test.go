// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/format"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Example is a conversation for supervised training on its last message. The reference's records contain examples, and
// they test how a format writes the last message of an assistant. No run trains on them.
type Example struct {
	Tokens []int32
	// Weights are 1 for the tokens that the assistant would have to sample and 0 for all others.
	Weights []float32
}

// NewExample renders a conversation that ends with a message of the assistant.
func NewExample(name string, tokens tokenizer.Tokenizer, options Options,
	conversation renderer.Conversation) (Example, error) {
	f, err := variants[name](tokens, options)
	if err != nil {
		return Example{}, err
	}
	messages, err := f.Arrange(conversation)
	if err != nil {
		return Example{}, err
	}
	last := len(messages) - 1
	if last < 0 || messages[last].Role != chat.RoleAssistant {
		return Example{}, errors.New("the conversation does not end with a message of the assistant")
	}
	base := f.Base()
	out := format.NewWriter(base, nil)
	at := base.Place(messages)
	at.TurnStart = base.Place(messages[:last]).TurnStart
	for at.Index = range messages {
		if err := f.Write(out, at); err != nil {
			return Example{}, err
		}
		out.Cut()
	}
	if name == "role_colon" {
		out.Text(strings.TrimPrefix(nextUser, separator)).Cut()
	}
	conversation.Messages = conversation.Messages[:len(conversation.Messages)-1]
	prompt, err := format.New(f).Prompt(conversation)
	if err != nil {
		return Example{}, err
	}
	return weigh(out, prompt, name)
}

// weigh gives weight to the output of the last message, but to nothing that the prompt has given already. A prompt
// that the example does not begin with comes from a format that writes a turn without reasoning otherwise than its
// prompt begins it. Then the whole output has weight, unless the prompt disables reasoning and the turn reasons.
func weigh(out *format.Writer, prompt []int32, name string) (Example, error) {
	given := out.Output
	if len(out.IDs) >= len(prompt) && slices.Equal(out.IDs[:len(prompt)], prompt) {
		given = max(given, len(prompt))
	} else if strings.HasSuffix(name, "_disable_thinking") && !strings.HasPrefix(name, "deepseek") {
		return Example{}, fmt.Errorf("the last message reasons, which the prompt of %s disables", name)
	}
	e := Example{Tokens: out.IDs, Weights: make([]float32, len(out.IDs))}
	for i := given; i < len(e.Weights); i++ {
		e.Weights[i] = 1
	}
	return e, nil
}

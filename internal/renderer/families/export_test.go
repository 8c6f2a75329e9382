// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Example is a conversation for supervised training on its last message, as the reference's records have it.
type Example struct {
	Tokens []int32
	// Weights are 1 for the tokens that the assistant would have to sample and 0 for all others.
	Weights []float32
}

// NewExample renders a conversation that ends with a message of the assistant.
func NewExample(name string, tokens tokenizer.Tokenizer, options Options,
	conversation renderer.Conversation) (Example, error) {
	r, err := New(name, tokens, options)
	if err != nil {
		return Example{}, err
	}
	last := len(conversation.Messages) - 1
	if last < 0 || conversation.Messages[last].Role != chat.RoleAssistant {
		return Example{}, errors.New("the conversation does not end with a message of the assistant")
	}
	example, err := r.Example(conversation, false)
	if err != nil {
		return Example{}, err
	}
	if example.Contradicts {
		return Example{}, errors.New("the last reply reasons, and the prompt tells the model not to")
	}
	e := Example{Tokens: example.IDs, Weights: make([]float32, len(example.IDs))}
	output := example.Written[len(example.Written)-1].Output
	for i := max(output.Begin, example.Given); i < output.End; i++ {
		e.Weights[i] = 1
	}
	return e, nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

// Texts is a Renderer that exposes its tokenizer, for prompts that are not conversations.
type Texts interface {
	// Encode returns the ids of ordinary text. Names of special tokens in it are ordinary text.
	Encode(text string) []int32
	// Decode returns the text of ids, with special tokens as their names.
	Decode(ids []int32) (string, error)
}

// TextsOf returns the tokenizer of a renderer, or of a renderer that it wraps; nil if there is none.
func TextsOf(r Renderer) Texts {
	for r != nil {
		if texts, ok := r.(Texts); ok {
			return texts
		}
		wrapper, ok := r.(interface{ Unwrap() Renderer })
		if !ok {
			return nil
		}
		r = wrapper.Unwrap()
	}
	return nil
}

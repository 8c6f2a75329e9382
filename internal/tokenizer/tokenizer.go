// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenizer turns text into token ids and back, exactly as the model that is trained expects it. It does not
// handle conversations, which are the task of renderers. It fails closed: it refuses a tokenizer that it does not know
// for certain, since ids that are nearly right would train a model on other text.
package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tokenizer turns text into ids and back. It is safe for concurrent use.
type Tokenizer interface {
	// Encode returns the ids of ordinary text. Names of special tokens in it are ordinary text, so that the author
	// of a prompt cannot end a turn within it.
	Encode(text string) []int32
	// AppendEncode appends the ids of text in which some added tokens are recognised by their names.
	AppendEncode(dst []int32, text string, match Match) []int32
	// AppendEncodeWhere appends the ids of text. It recognises a special token by its name only if the function special
	// returns true for the place of the name in the text. Added tokens that are not special are recognised everywhere.
	AppendEncodeWhere(dst []int32, text string, special func(start, end int) bool) []int32
	// Decode returns the text of ids, with special tokens as their names. Bytes that are not UTF-8 become U+FFFD,
	// one for each maximal invalid part. An id that the vocabulary lacks is an error.
	Decode(ids []int32) (string, error)
	// Special returns the id of an added token by its name, whether the token is special or not.
	Special(name string) (id int32, ok bool)
}

// models has the tokenizers that are built in, by the model's name at the endpoint.
var models = map[string]func() Tokenizer{
	"tinkersim/byte-136k":           newByteLevel,
	"tinkersim/byte-136k-countdown": newByteLevel,
	"tinkersim/rubric-judge":        newByteLevel,
}

// UnknownModelError reports that no tokenizer is built in for a model.
type UnknownModelError struct {
	Model string
	// Known are the models with a built-in tokenizer, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownModelError) Error() string {
	return fmt.Sprintf("no tokenizer is known for model %q, only for %s", e.Model, strings.Join(e.Known, ", "))
}

// ForModel returns the built-in tokenizer of a model. Its error is an *UnknownModelError.
func ForModel(name string) (Tokenizer, error) {
	build, ok := models[name]
	if !ok {
		return nil, &UnknownModelError{Model: name, Known: slices.Sorted(maps.Keys(models))}
	}
	return build(), nil
}

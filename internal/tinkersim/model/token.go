// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	_ "embed"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// Vocab is the number of tokens: 256 bytes and four specials.
const Vocab = transformer.Vocab

// The special tokens. Ids below them are bytes.
const (
	// TokenEnd, <|end|>, ends a turn. It always stops a sample.
	TokenEnd = 256
	// TokenBOS, <|bos|>, may open a text. The base model was trained without it.
	TokenBOS = 257
	// TokenPad, <|pad|>, fills positions without a token.
	TokenPad = 258
	// TokenReserved, <|reserved|>, has no meaning yet.
	TokenReserved = 259
)

//go:embed tokenizer.json
var tokenizerFile []byte

// TokenizerJSON returns the tokenizer as Hugging Face's tokenizers library reads it: each byte is
// one token, with the byte as its id, and the text of a special token is that token.
func TokenizerJSON() []byte { return slices.Clone(tokenizerFile) }

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

//go:generate go run ./pretrain -out base.bin
//go:generate go run ./pretrain -texts countdown -steps 2400 -batch 48 -out countdown.bin
//go:generate go run ./pretrain -texts sums -steps 2400 -batch 96 -out sums.bin

//go:embed base.bin
var baseFile []byte

//go:embed countdown.bin
var countdownFile []byte

//go:embed sums.bin
var sumsFile []byte

// BaseModel is the frozen pretrained model with one vocabulary. It is safe for concurrent use. Adapters
// and weights that are made from it share its buffers.
type BaseModel struct {
	*network
	vocabulary Vocabulary
	context    int
	// silent are the native tokens without an id in the vocabulary.
	silent []int32
}

// network is the part that base models of all vocabularies share.
type network struct {
	params   *transformer.Params
	digest   [sha256.Size]byte
	engine   transformer.Engine
	decoders sync.Pool
}

var loadBase, loadCountdownBase, loadSumsBase = embedded(baseFile), embedded(countdownFile), embedded(sumsFile)

// embedded returns a function that returns the base model of a file, which is decoded once.
func embedded(file []byte) func() *BaseModel {
	return sync.OnceValue(func() *BaseModel {
		base, err := newBaseModel(file)
		if err != nil {
			panic(fmt.Sprintf("decoding an embedded base model: %v", err))
		}
		return base
	})
}

// Base returns the embedded base model that was pretrained on sums.
func Base() *BaseModel { return loadBase() }

// CountdownBase returns the embedded base model that was pretrained on Countdown.
func CountdownBase() *BaseModel { return loadCountdownBase() }

// SumsBase returns the embedded base model that adds correctly, a teacher of Base.
func SumsBase() *BaseModel { return loadSumsBase() }

// newBaseModel decodes a base model that pretrain wrote.
func newBaseModel(file []byte) (*BaseModel, error) {
	flat, err := transformer.Decode(file)
	if err != nil {
		return nil, err
	}
	shared := &network{params: transformer.NewParams(flat), digest: sha256.Sum256(file)}
	shared.decoders.New = func() any { return new(transformer.Decoder) }
	return &BaseModel{network: shared, vocabulary: nativeVocabulary{}, context: Window}, nil
}

// WithVocabulary returns the same model with another vocabulary. States and weights that were saved with one
// vocabulary can be read with another.
func (b *BaseModel) WithVocabulary(vocabulary Vocabulary) *BaseModel {
	other := &BaseModel{network: b.network, vocabulary: vocabulary, context: LongContext}
	for _, native := range nativeTokens {
		if _, ok := vocabulary.Token(native); !ok {
			other.silent = append(other.silent, native)
		}
	}
	return other
}

// WithLongContext returns the same model for prompts of LongContext tokens.
func (b *BaseModel) WithLongContext() *BaseModel {
	other := *b
	other.context = LongContext
	return &other
}

// Context returns the most tokens that a prompt and its completion, or a datum, may have.
func (b *BaseModel) Context() int { return b.context }

// Text returns the bytes that tokens stand for. The model's special tokens and ids that are not in the
// vocabulary have none.
func (b *BaseModel) Text(tokens []int32) []byte {
	var text []byte
	for _, token := range tokens {
		text = appendText(text, b.vocabulary.Spell(token)...)
	}
	return text
}

// appendText adds the bytes of native tokens.
func appendText(text []byte, native ...int32) []byte {
	for _, token := range native {
		if token < 256 {
			text = append(text, byte(token))
		}
	}
	return text
}

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

//go:embed base.bin
var baseFile []byte

// BaseModel is the frozen pretrained model under one vocabulary. It is safe for concurrent use. Adapters
// and weights that are made from it share its buffers.
type BaseModel struct {
	*network
	vocabulary Vocabulary
	// silent are the own tokens that the vocabulary has no id for.
	silent []int32
}

// network is what base models of all vocabularies have in common.
type network struct {
	params   *transformer.Params
	digest   [sha256.Size]byte
	engine   transformer.Engine
	decoders sync.Pool
}

var loadBase = sync.OnceValue(func() *BaseModel {
	base, err := newBaseModel(baseFile)
	if err != nil {
		panic(fmt.Sprintf("decoding the embedded base model: %v", err))
	}
	return base
})

// Base returns the embedded base model, which is decoded once.
func Base() *BaseModel { return loadBase() }

// newBaseModel decodes a base model as pretrain writes it.
func newBaseModel(file []byte) (*BaseModel, error) {
	flat, err := transformer.Decode(file)
	if err != nil {
		return nil, err
	}
	shared := &network{params: transformer.NewParams(flat), digest: sha256.Sum256(file)}
	return &BaseModel{network: shared, vocabulary: ownVocabulary{}}, nil
}

// Under returns the same model under another vocabulary. States and weights that were made under one can
// be read under another.
func (b *BaseModel) Under(vocabulary Vocabulary) *BaseModel {
	other := &BaseModel{network: b.network, vocabulary: vocabulary}
	for _, own := range ownTokens {
		if _, ok := vocabulary.Token(own); !ok {
			other.silent = append(other.silent, own)
		}
	}
	return other
}

// Text returns what tokens are read as, byte by byte. The model's special tokens have no text, and neither
// has an id that is not in the vocabulary.
func (b *BaseModel) Text(tokens []int32) []byte {
	var text []byte
	for _, token := range tokens {
		text = appendText(text, b.vocabulary.Spell(token)...)
	}
	return text
}

// appendText adds the bytes of own tokens.
func appendText(text []byte, own ...int32) []byte {
	for _, token := range own {
		if token < 256 {
			text = append(text, byte(token))
		}
	}
	return text
}

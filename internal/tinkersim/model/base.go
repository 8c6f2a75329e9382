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

// BaseModel is the frozen pretrained model. It is safe for concurrent use. Adapters and weights that
// are made from it share its buffers.
type BaseModel struct {
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
	return &BaseModel{params: transformer.NewParams(flat), digest: sha256.Sum256(file)}, nil
}

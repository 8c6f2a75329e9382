// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
)

// A checkpoint is a magic line with the version, the digest of the base model, the body, and the
// SHA-256 sum of all that. Numbers are little-endian.
const stateMagic = "tinkersim state 1\n"

// ErrBase reports that a checkpoint was made with another base model.
var ErrBase = errors.New("made with another base model")

var (
	errLength   = errors.New("wrong length")
	errChecksum = errors.New("wrong checksum")
	errMagic    = errors.New("not this kind of data or version")
	errCorrupt  = errors.New("not a possible configuration")
)

// The bits of a state's flags.
const (
	flagAttention = 1 << iota
	flagMLP
	flagUnembed
	flagOptimizer
)

// stateHead is the length of a body before its vectors: flags, rank, seed and steps.
const stateHead = 1 + 2 + 8 + 8

// MarshalState returns the adapter as canonical bytes with a checksum, together with the Adam state
// if withOptimizer is set. A gradient that was accumulated is not part of it.
func (a *Adapter) MarshalState(withOptimizer bool) []byte {
	flags, steps := a.config.flags(), uint64(0)
	vectors := [][]float32{a.params}
	if withOptimizer {
		flags |= flagOptimizer
		steps = a.steps
		vectors = append(vectors, a.first, a.second)
	}
	out := append(header(stateMagic, a.base), flags)
	out = binary.LittleEndian.AppendUint16(out, uint16(a.config.Rank))
	out = binary.LittleEndian.AppendUint64(out, uint64(a.config.Seed))
	out = binary.LittleEndian.AppendUint64(out, steps)
	for _, v := range vectors {
		out = appendReals(out, v)
	}
	return seal(out)
}

// UnmarshalState reads the output of MarshalState: with the optimizer, the adapter continues exactly as the one that
// was written; without it, its Adam state is new. The base must be the base model that the adapter was made with.
// Asking for an optimizer that was not written is a UserError.
func UnmarshalState(base *BaseModel, data []byte, withOptimizer bool) (*Adapter, error) {
	body, err := unseal(stateMagic, base, data)
	if err != nil {
		return nil, err
	}
	if len(body) < stateHead {
		return nil, errLength
	}
	flags := body[0]
	cfg := Config{
		Rank:           int(binary.LittleEndian.Uint16(body[1:])),
		Seed:           int64(binary.LittleEndian.Uint64(body[3:])),
		TrainAttention: flags&flagAttention != 0,
		TrainMLP:       flags&flagMLP != 0,
		TrainUnembed:   flags&flagUnembed != 0,
	}
	if cfg.Validate() != nil {
		return nil, errCorrupt
	}
	hasOptimizer := flags&flagOptimizer != 0
	if withOptimizer && !hasOptimizer {
		return nil, userErrorf("the state holds no optimizer")
	}
	a := newAdapter(base, cfg)
	if err := a.readVectors(body[stateHead:], hasOptimizer); err != nil {
		return nil, err
	}
	a.steps = binary.LittleEndian.Uint64(body[11:])
	if !withOptimizer {
		a.steps = 0
		clear(a.first)
		clear(a.second)
	}
	a.merge()
	return a, nil
}

// UnmarshalAdapter reads a state without its optimizer, whichever embedded base model it was made with.
func UnmarshalAdapter(data []byte) (*Adapter, error) {
	adapter, err := UnmarshalState(Base(), data, false)
	if errors.Is(err, ErrBase) {
		adapter, err = UnmarshalState(CountdownBase(), data, false)
	}
	if errors.Is(err, ErrBase) {
		adapter, err = UnmarshalState(SumsBase(), data, false)
	}
	return adapter, err
}

func (a *Adapter) readVectors(body []byte, hasOptimizer bool) error {
	vectors := [][]float32{a.params}
	if hasOptimizer {
		vectors = append(vectors, a.first, a.second)
	}
	if len(body) != 4*len(vectors)*len(a.params) {
		return errLength
	}
	for _, v := range vectors {
		body = readReals(v, body)
	}
	return nil
}

func (c Config) flags() byte {
	var flags byte
	if c.TrainAttention {
		flags |= flagAttention
	}
	if c.TrainMLP {
		flags |= flagMLP
	}
	if c.TrainUnembed {
		flags |= flagUnembed
	}
	return flags
}

// header returns the beginning of a checkpoint.
func header(magic string, base *BaseModel) []byte {
	return append([]byte(magic), base.digest[:]...)
}

// seal appends the checksum to a checkpoint.
func seal(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// unseal returns the body of a checkpoint after checking its checksum, its kind and its base model.
func unseal(magic string, base *BaseModel, data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, errMagic
	}
	at := len(data) - sha256.Size
	if at < len(magic)+sha256.Size {
		return nil, errLength
	}
	if sum := sha256.Sum256(data[:at]); !bytes.Equal(sum[:], data[at:]) {
		return nil, errChecksum
	}
	if !bytes.Equal(data[len(magic):len(magic)+sha256.Size], base.digest[:]) {
		return nil, ErrBase
	}
	return data[len(magic)+sha256.Size : at], nil
}

func appendReals(out []byte, values []float32) []byte {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// readReals fills values and returns the rest of data.
func readReals(values []float32, data []byte) []byte {
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return data[4*len(values):]
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"sync"
)

// Digest is a SHA-256 over a canonical form.
type Digest [sha256.Size]byte

// String returns 64 hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

func parseHex(into []byte, text string) error {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return fmt.Errorf("%q is not hexadecimal: %w", text, err)
	}
	if len(raw) != len(into) || hex.EncodeToString(raw) != text {
		return fmt.Errorf("%q is not %d hex digits in lower case", text, 2*len(into))
	}
	copy(into, raw)
	return nil
}

// canonical hashes fields: numbers as eight little-endian bytes, texts and lists after their length. It must not be
// used after sum.
type canonical struct {
	hash    hash.Hash
	scratch []byte
}

// canonicals pools unused values: each group has a digest, and each request for samples a seed.
var canonicals = sync.Pool{New: func() any { return &canonical{hash: sha256.New(), scratch: make([]byte, 0, 4096)} }}

// newCanonical begins a digest of one kind of thing; the tag keeps kinds and versions of the form apart.
func newCanonical(tag string) *canonical {
	c := canonicals.Get().(*canonical)
	c.hash.Reset()
	c.scratch = c.scratch[:0]
	c.text(tag)
	return c
}

func (c *canonical) uint(v uint64) {
	c.flush(8)
	c.scratch = binary.LittleEndian.AppendUint64(c.scratch, v)
}

func (c *canonical) int(v int64) { c.uint(uint64(v)) }

// float writes a number, and the same NaN for every NaN.
func (c *canonical) float(v float64) {
	if math.IsNaN(v) {
		v = math.NaN()
	}
	c.uint(math.Float64bits(v))
}

// optional writes a number that may be missing. A missing number differs from every number.
func (c *canonical) optional(v *float64) {
	if v == nil {
		c.uint(0)
		return
	}
	c.uint(1)
	c.float(*v)
}

func (c *canonical) text(s string) {
	c.int(int64(len(s)))
	c.bytes([]byte(s))
}

func (c *canonical) bytes(b []byte) {
	c.flush(cap(c.scratch))
	c.hash.Write(b)
}

func (c *canonical) int32s(values []int32) {
	c.int(int64(len(values)))
	for _, v := range values {
		c.flush(4)
		c.scratch = binary.LittleEndian.AppendUint32(c.scratch, uint32(v))
	}
}

func (c *canonical) float32s(values []float32) {
	c.int(int64(len(values)))
	for _, v := range values {
		c.flush(4)
		c.scratch = binary.LittleEndian.AppendUint32(c.scratch, float32Bits(v))
	}
}

func (c *canonical) bools(values []bool) {
	c.int(int64(len(values)))
	for _, v := range values {
		c.flush(1)
		if v {
			c.scratch = append(c.scratch, 1)
			continue
		}
		c.scratch = append(c.scratch, 0)
	}
}

// flush makes room for n bytes of scratch.
func (c *canonical) flush(n int) {
	if len(c.scratch)+n <= cap(c.scratch) {
		return
	}
	c.hash.Write(c.scratch)
	c.scratch = c.scratch[:0]
}

func (c *canonical) sum() (d [sha256.Size]byte) {
	c.flush(cap(c.scratch) + 1)
	c.hash.Sum(d[:0])
	canonicals.Put(c)
	return d
}

// float32Bits returns the bits of v, and the same bits for every NaN.
func float32Bits(v float32) uint32 {
	if v != v {
		return 0x7fc00000
	}
	return math.Float32bits(v)
}

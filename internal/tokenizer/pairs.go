// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "math/bits"

// Ranks are limited, so that a pair and its rank fit into 64 bits.
const (
	rankBits = 64 - 2*idBits
	maxRank  = 1<<rankBits - 2
	// noRank is the rank of a pair that is not merged.
	noRank = 1<<rankBits - 1
)

// pairs says which neighbouring tokens are merged, the lowest rank first, and into which token.
type pairs struct {
	slots []uint64 // Each has a pair, then its rank, or is freeSlot.
	into  []int32  // It has the merged token by rank.
	// bytes has the ranks of pairs of single bytes: merging begins with them.
	bytes []uint32
}

const freeSlot = 1<<64 - 1

// merge is a pair of tokens and the token that they become.
type merge struct{ first, second, into int32 }

func newPairs(entries, ranks int) *pairs {
	p := &pairs{slots: make([]uint64, tableSize(entries)), into: make([]int32, ranks), bytes: make([]uint32, 1<<16)}
	for i := range p.slots {
		p.slots[i] = freeSlot
	}
	for i := range p.bytes {
		p.bytes[i] = noRank
	}
	return p
}

// add adds a pair with its rank. It returns false and does nothing if the pair exists already. Pairs of one rank become
// the same token.
func (p *pairs) add(a, b int32, rank uint32, into int32) bool {
	key := pairKey(a, b)
	i := pairHash(key, len(p.slots))
	for p.slots[i] != freeSlot {
		if p.slots[i]>>rankBits == key {
			return false
		}
		i = (i + 1) & (len(p.slots) - 1)
	}
	p.slots[i] = key<<rankBits | uint64(rank)
	p.into[rank] = into
	return true
}

// rank returns the rank of a pair, or noRank if it is not merged.
func (p *pairs) rank(a, b int32) uint32 {
	key := pairKey(a, b)
	for i := pairHash(key, len(p.slots)); ; i++ {
		slot := p.slots[i&(len(p.slots)-1)]
		if slot>>rankBits == key || slot == freeSlot {
			return uint32(slot & noRank)
		}
	}
}

// indexBytes fills in the ranks of pairs of bytes, given the ids of single bytes.
func (p *pairs) indexBytes(ids *[256]int32) {
	for a := range ids {
		for b := range ids {
			p.bytes[a<<8|b] = p.rank(ids[a], ids[b])
		}
	}
}

func pairKey(a, b int32) uint64 { return uint64(a)<<idBits | uint64(b) }

func pairHash(key uint64, slots int) int {
	hi, lo := bits.Mul64(key^mix2, mix1)
	return int(hi^lo) & (slots - 1)
}

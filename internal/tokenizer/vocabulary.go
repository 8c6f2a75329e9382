// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "math/bits"

// maxID is the largest id: two ids and a rank fit into 64 bits.
const (
	idBits = 20
	maxID  = 1<<idBits - 1
)

// span is the place of a token's bytes in the vocabulary's text. It is empty for an id without a token.
type span struct{ start, end uint32 }

// vocabulary maps ids to the bytes of tokens, and bytes to ids. A lookup of a token of up to eight bytes, like most
// pieces of text, does not read the bytes of the token in text.
type vocabulary struct {
	text  string
	spans []span
	short []shortSlot
	long  []uint64 // Each has the high half of the hash, then the id plus one; 0 is free.
	// longest is the length of the longest token in bytes.
	longest int
}

// shortSlot holds a token of up to eight bytes as a number. It is free if size is 0.
type shortSlot struct {
	key  uint64
	id   int32
	size uint32
}

// maxShort is the largest size of a short token.
const maxShort = 8

// newVocabulary indexes the tokens of text by their bytes, except hidden ids. If two tokens are equal, it returns their
// ids and false.
func newVocabulary(text string, spans []span, hidden map[int32]bool) (v *vocabulary, twice [2]int32, ok bool) {
	v = &vocabulary{text: text, spans: spans}
	var shorts, longs int
	for _, s := range spans {
		size := int(s.end - s.start)
		v.longest = max(v.longest, size)
		if size > maxShort {
			longs++
		} else {
			shorts++
		}
	}
	v.short = make([]shortSlot, tableSize(shorts))
	v.long = make([]uint64, tableSize(longs))
	for i, s := range spans {
		id := int32(i)
		if s.start == s.end || hidden[id] {
			continue
		}
		if other, found := v.find(text[s.start:s.end]); found {
			return nil, [2]int32{other, id}, false
		}
		v.add(text[s.start:s.end], id)
	}
	return v, twice, true
}

// tableSize returns a power of two that leaves between a third and two thirds of a table free.
func tableSize(entries int) int { return 1 << bits.Len(uint(entries+entries/2)) }

func (v *vocabulary) add(token string, id int32) {
	if len(token) <= maxShort {
		key := shortKey(token)
		i := shortHash(key, len(v.short))
		for v.short[i].size != 0 {
			i = (i + 1) & (len(v.short) - 1)
		}
		v.short[i] = shortSlot{key: key, id: id, size: uint32(len(token))}
		return
	}
	h := longHash(token)
	i := int(h) & (len(v.long) - 1)
	for v.long[i] != 0 {
		i = (i + 1) & (len(v.long) - 1)
	}
	v.long[i] = h>>32<<32 | uint64(id+1)
}

// find returns the token that has exactly these bytes.
func (v *vocabulary) find(token string) (int32, bool) {
	if len(token) > maxShort {
		return v.findLong(token)
	}
	key := shortKey(token)
	for i := shortHash(key, len(v.short)); ; i++ {
		slot := &v.short[i&(len(v.short)-1)]
		if slot.key == key && slot.size == uint32(len(token)) {
			return slot.id, true
		}
		if slot.size == 0 {
			return 0, false
		}
	}
}

func (v *vocabulary) findLong(token string) (int32, bool) {
	if len(token) > v.longest {
		return 0, false
	}
	h := longHash(token)
	for i := int(h); ; i++ {
		slot := v.long[i&(len(v.long)-1)]
		if slot == 0 {
			return 0, false
		}
		if slot>>32 == h>>32 {
			id := int32(uint32(slot)) - 1
			if s := v.spans[id]; v.text[s.start:s.end] == token {
				return id, true
			}
		}
	}
}

// bytes returns the bytes of a token. ok is false if the id has none.
func (v *vocabulary) bytes(id int32) (token string, ok bool) {
	if uint(id) >= uint(len(v.spans)) {
		return "", false
	}
	s := v.spans[id]
	return v.text[s.start:s.end], s.start != s.end
}

const (
	mix1 = 0x9e3779b97f4a7c15
	mix2 = 0xd6e8feb86659fd93
)

func shortHash(key uint64, slots int) int {
	hi, lo := bits.Mul64(key^mix2, mix1)
	return int(hi^lo) & (slots - 1)
}

func longHash(token string) uint64 {
	h := uint64(len(token)) * mix2
	for ; len(token) > 8; token = token[8:] {
		hi, lo := bits.Mul64(h^load64(token), mix1)
		h = hi ^ lo
	}
	hi, lo := bits.Mul64(h^shortKey(token), mix2)
	return hi ^ lo
}

// shortKey returns up to eight bytes as a number, the first byte as the lowest. The parts that it reads may overlap,
// and agree where they do.
func shortKey(s string) uint64 {
	switch n := uint(len(s)); {
	case n >= 8:
		return load64(s)
	case n >= 4:
		return uint64(load32(s)) | uint64(load32(s[n-4:]))<<((n-4)*8)
	case n > 0:
		return uint64(s[0]) | uint64(s[n/2])<<(n/2*8) | uint64(s[n-1])<<((n-1)*8)
	}
	return 0
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

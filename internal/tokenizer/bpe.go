// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"sync/atomic"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

// Match says which added tokens are recognised within text that is encoded.
type Match uint8

const (
	// Literal takes the names of special tokens as text. Added tokens that are not special, such as <think> and
	// <tool_call> in some vocabularies, are recognised.
	Literal Match = iota
	// Specials recognises every added token.
	Specials
	// Plain recognises none.
	Plain
)

// BPE is a byte-level tokenizer: it normalises text, cuts it into pieces, and merges the bytes of each piece pair by
// pair. It implements Tokenizer and is safe for concurrent use.
type BPE struct {
	vocabulary *vocabulary
	pairs      *pairs
	byteIDs    [256]int32
	scan       split.Scanner
	normalize  func(string) string   // It is nil if text is not normalised.
	portions   func(string) []string // It is nil if text is encoded as a whole.
	// wholeWins means that a piece that is a token becomes that token, however it would merge.
	wholeWins bool
	// whole caches, with two bits for each id, whether the bytes of a token merge into that token.
	whole []atomic.Uint32

	// raw finds added tokens in text before it is normalised, and normalized afterwards. They are nil if there are
	// no such tokens.
	raw, normalized *matcher
	specials        map[string]int32
	special         map[int32]bool // the ids of special added tokens
}

var _ Tokenizer = (*BPE)(nil)

// Encode implements Tokenizer.
func (t *BPE) Encode(text string) []int32 {
	return t.AppendEncode(make([]int32, 0, len(text)/3+1), text, Literal)
}

// AppendEncode implements Tokenizer.
func (t *BPE) AppendEncode(dst []int32, text string, match Match) []int32 {
	if !utf8.ValidString(text) {
		text = lossy([]byte(text))
	}
	if t.portions == nil {
		return t.encode(dst, text, match)
	}
	for _, portion := range t.portions(text) {
		dst = t.encode(dst, portion, match)
	}
	return dst
}

// encode appends the ids of text that may contain added tokens.
func (t *BPE) encode(dst []int32, text string, match Match) []int32 {
	dst, rest := between(dst, text, t.raw, match, func(dst []int32, text string) []int32 {
		return t.encodeNormalized(dst, text, match)
	})
	return t.encodeNormalized(dst, rest, match)
}

func (t *BPE) encodeNormalized(dst []int32, text string, match Match) []int32 {
	if t.normalize != nil {
		text = t.normalize(text)
	}
	dst, rest := between(dst, text, t.normalized, match, t.encodePieces)
	return t.encodePieces(dst, rest)
}

// between appends the ids of added tokens and, with encode, of the text between them. It returns the text after the
// last one. If a special token is not to be recognised, it skips the whole token, as the reference does.
func between(dst []int32, text string, m *matcher, match Match,
	encode func([]int32, string) []int32) ([]int32, string) {
	if m == nil || match == Plain || match == Literal && !m.words {
		return dst, text
	}
	done := 0
	for at := 0; ; {
		found, ok := m.find(text, at)
		if !ok {
			return dst, text[done:]
		}
		at = found.end
		if found.special && match != Specials {
			continue
		}
		dst = append(encode(dst, text[done:found.start]), found.id)
		done = found.end
	}
}

// encodePieces appends the ids of text without added tokens.
func (t *BPE) encodePieces(dst []int32, text string) []int32 {
	for len(text) > 0 {
		n := t.scan(text)
		piece := text[:n]
		text = text[n:]
		if id, ok := t.vocabulary.find(piece); ok && (t.wholeWins || t.isWhole(id, piece)) {
			dst = append(dst, id)
			continue
		}
		dst = t.merge(dst, piece)
	}
	return dst
}

// BPE.whole has these values for a token, or 0 if it is not yet known whether its bytes merge into it.
const (
	isWhole  = 1
	isNot    = 2
	wholeIDs = 16 // is the number of ids in a word of 32 bits
)

// isWhole reports whether the bytes of a token merge into that token. The merges do not reach some tokens.
func (t *BPE) isWhole(id int32, token string) bool {
	word, shift := &t.whole[id/wholeIDs], uint(id%wholeIDs)*2
	switch word.Load() >> shift & 3 {
	case isWhole:
		return true
	case isNot:
		return false
	}
	var ids [8]int32
	if got := t.merge(ids[:0], token); len(got) == 1 && got[0] == id {
		word.Or(isWhole << shift)
		return true
	}
	word.Or(isNot << shift)
	return false
}

// Special implements Tokenizer.
func (t *BPE) Special(name string) (id int32, ok bool) {
	id, ok = t.specials[name]
	return id, ok
}

// IsSpecial reports whether an id belongs to a special added token: a token that is left out of text for people.
func (t *BPE) IsSpecial(id int32) bool { return t.special[id] }

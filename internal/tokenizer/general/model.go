// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"fmt"
	"unicode/utf8"
)

// Model is BPE: the characters of a piece become tokens, and neighbours are merged again and again.
type Model struct {
	Vocabulary map[string]int32
	// Merges are the pairs that are merged, in the order of their ranks.
	Merges []Merge
	// Unknown is the token of characters that the vocabulary lacks. If it is empty, they are left out, as in the
	// reference.
	Unknown *string
	// FuseUnknown makes one token of neighbouring unknown characters.
	FuseUnknown bool
	// ByteFallback writes an unknown character as the tokens <0x00> to <0xFF> of its bytes, if all of them exist.
	ByteFallback bool
	// WholeWins means that a piece that is a token becomes that token, however it would merge.
	WholeWins bool
}

// Merge is a pair of tokens and the token that they become, by their ids.
type Merge struct{ First, Second, Into int32 }

type model struct {
	Model
	tokens map[int32]string
	// pairs has the rank and the merged token of each pair.
	pairs   map[uint64]ranked
	ascii   [utf8.RuneSelf]int32 // It has the ids of characters, or -1.
	bytes   [256]int32           // It has the ids of byte tokens, or -1.
	unknown int32                // It is -1 if there is none.
}

type ranked struct {
	rank uint32
	into int32
}

// newModel makes a model that never writes the hidden tokens, unless one of them is the unknown token.
func newModel(config Model, hidden map[int32]string) *model {
	m := &model{Model: config, tokens: make(map[int32]string, len(config.Vocabulary)),
		pairs: make(map[uint64]ranked, len(config.Merges)), unknown: -1}
	for token, id := range config.Vocabulary {
		m.tokens[id] = token
	}
	if config.Unknown != nil {
		m.unknown = m.id(*config.Unknown)
	}
	for _, token := range hidden {
		delete(m.Vocabulary, token)
	}
	for i, merge := range config.Merges {
		if _, never := hidden[merge.Into]; never {
			continue
		}
		m.pairs[pairOf(merge.First, merge.Second)] = ranked{rank: uint32(i), into: merge.Into}
	}
	for i := range m.ascii {
		m.ascii[i] = m.id(string(rune(i)))
	}
	for i := range m.bytes {
		m.bytes[i] = m.id(fmt.Sprintf("<0x%02X>", i))
	}
	return m
}

func (m *model) id(token string) int32 {
	if id, ok := m.Vocabulary[token]; ok {
		return id
	}
	return -1
}

func pairOf(first, second int32) uint64 { return uint64(uint32(first))<<32 | uint64(uint32(second)) }

// append appends the ids of a piece.
func (m *model) append(dst []int32, text string) []int32 {
	if m.WholeWins {
		if id, ok := m.Vocabulary[text]; ok {
			return append(dst, id)
		}
	}
	w := words.Get().(*word)
	defer words.Put(w)
	w.ids = m.symbols(w.ids[:0], text)
	return w.merge(dst, m.pairs)
}

// symbols appends the tokens of single characters.
func (m *model) symbols(ids []int32, text string) []int32 {
	waiting := 0 // It is the number of unknown tokens that are still to be written: a byte token overtakes them.
	for i := 0; i < len(text); {
		id, size := m.character(text[i:])
		character := text[i : i+size]
		i += size
		if id >= 0 {
			if waiting > 0 {
				ids, waiting = append(ids, m.unknown), 0
			}
			ids = append(ids, id)
			continue
		}
		if m.ByteFallback {
			if more, ok := m.fallBack(ids, character); ok {
				ids = more
				continue
			}
		}
		switch {
		case m.unknown < 0:
		case waiting > 0 && !m.FuseUnknown:
			ids = append(ids, m.unknown)
		default:
			waiting = 1
		}
	}
	if waiting > 0 {
		ids = append(ids, m.unknown)
	}
	return ids
}

// character returns the id of the first character of a text, or -1, and its size.
func (m *model) character(text string) (id int32, size int) {
	if b := text[0]; b < utf8.RuneSelf {
		return m.ascii[b], 1
	}
	_, size = utf8.DecodeRuneInString(text)
	return m.id(text[:size]), size
}

// fallBack appends the tokens of the bytes of a character, if all of them exist.
func (m *model) fallBack(ids []int32, character string) ([]int32, bool) {
	start := len(ids)
	for i := range len(character) {
		id := m.bytes[character[i]]
		if id < 0 {
			return ids[:start], false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// run is a row of code points with their traits, in the generated table.
type run struct {
	first, last rune
	value       uint32
}

// trait is a property of a character for a step of the reference. Each step has tables of its own Unicode version.
type trait uint32

// These are in the order of hack/models/unicode_tables.py.
const (
	traitAccent      trait = 1 << iota // characters that StripAccents removes
	traitNumeric                       // characters that Digits isolates
	traitPunctuation                   // characters that Punctuation isolates
	traitWord                          // characters that Whitespace takes for a part of a word
	traitSpace                         // characters that WhitespaceSplit removes
)

// traitsOf has the traits of all code points.
var traitsOf = sync.OnceValue(func() []uint8 {
	all := make([]uint8, utf8.MaxRune+1)
	for _, r := range traits {
		for c := r.first; c <= r.last; c++ {
			all[c] = uint8(r.value)
		}
	}
	return all
})

func has(r rune, t trait) bool { return traitsOf()[r]&uint8(t) != 0 }

// with returns a function that reports whether a character has a trait.
func with(t trait) func(rune) bool {
	all := traitsOf()
	return func(r rune) bool { return all[r]&uint8(t) != 0 }
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }

// apart reports whether no character of a word is directly beside a token.
func apart(text string, found Found) bool {
	before, size := utf8.DecodeLastRuneInString(text[:found.Start])
	if size > 0 && has(before, traitWord) {
		return false
	}
	after, size := utf8.DecodeRuneInString(text[found.End:])
	return size == 0 || !has(after, traitWord)
}

// lower has the lower case of the characters that differ from it.
var lower = sync.OnceValue(func() map[rune]string {
	index := make(map[rune]string, len(lowercase))
	for _, l := range lowercase {
		r, size := utf8.DecodeRuneInString(l)
		index[r] = l[size:]
	}
	return index
})

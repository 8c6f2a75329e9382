// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package nfc composes text as the reference tokenizers do (Unicode's normalization form C). Their tables are older
// than the tables of Go's libraries: they neither reorder marks nor compose pairs that Unicode added later. The
// algorithm is in Unicode Standard Annex 15.
package nfc

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// String returns the composed text, without a copy if text is composed already. The text must be valid UTF-8.
func String(text string) string {
	start := firstDoubt(text)
	if start == len(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	out.WriteString(text[:start])
	rest := text[start:]
	var runes []rune
	for len(rest) > 0 {
		end := segmentEnd(rest)
		runes = compose(decompose(runes[:0], rest[:end]))
		for _, r := range runes {
			out.WriteRune(r)
		}
		rest = rest[end:]
		plain := firstDoubt(rest)
		out.WriteString(rest[:plain])
		rest = rest[plain:]
	}
	return out.String()
}

// plainBelow is the first byte of the UTF-8 of U+0300. Every character before U+0300 is composed and stays as it is.
// Bytes that continue a character are also below it.
const plainBelow = 0xcc

// firstDoubt returns the index of the character before the first character that may change, since the two could
// compose. If the text cannot change, it returns the length of the text.
func firstDoubt(text string) int {
	last := 0
	for i := 0; i < len(text); {
		if text[i] < plainBelow {
			if text[i] < 0x80 || text[i] >= 0xc0 {
				last = i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if properties.of(r) != 0 {
			return last
		}
		last = i
		i += size
	}
	return len(text)
}

// segmentEnd returns the end of the part of text that no later character can change. It is before the second or a later
// character that neither changes nor composes with the one before it.
func segmentEnd(text string) int {
	for i, r := range text {
		if i > 0 && properties.of(r) == 0 {
			return i
		}
	}
	return len(text)
}

// Hangul syllables are computed from these ranges of first, vowel and last parts, and their sizes.
const (
	syllable, syllables = 0xac00, 11172
	firstPart, firsts   = 0x1100, 19
	vowelPart, vowels   = 0x1161, 21
	lastPart, lasts     = 0x11a7, 28 // The first of the last parts stands for no part.
)

// decompose appends the parts of text in canonical order.
func decompose(parts []rune, text string) []rune {
	for _, r := range text {
		if whole, ok := properties.decomposition[r]; ok {
			parts = append(parts, []rune(whole)...)
			continue
		}
		if s := r - syllable; s >= 0 && s < syllables {
			parts = append(parts, firstPart+s/(vowels*lasts), vowelPart+s/lasts%vowels)
			if s%lasts != 0 {
				parts = append(parts, lastPart+s%lasts)
			}
			continue
		}
		parts = append(parts, r)
	}
	for i := 0; i < len(parts); i++ {
		start := i
		for i < len(parts) && properties.order[parts[i]] != 0 {
			i++
		}
		if i-start > 1 {
			slices.SortStableFunc(parts[start:i], func(a, b rune) int {
				return int(properties.order[a]) - int(properties.order[b])
			})
		}
	}
	return parts
}

// compose joins parts in canonical order, in place.
func compose(parts []rune) []rune {
	starter, n := -1, 0
	var last uint8 // It is the order of the last part that was kept since the starter.
	for _, r := range parts {
		order := properties.order[r]
		if starter >= 0 && (starter == n-1 || last < order) {
			if whole, ok := join(parts[starter], r); ok {
				parts[starter] = whole
				continue
			}
		}
		if order == 0 {
			starter = n
		}
		last = order
		parts[n] = r
		n++
	}
	return parts[:n]
}

// join returns the character that two characters compose.
func join(a, b rune) (rune, bool) {
	if l, v := a-firstPart, b-vowelPart; l >= 0 && l < firsts && v >= 0 && v < vowels {
		return syllable + (l*vowels+v)*lasts, true
	}
	if s, t := a-syllable, b-lastPart; s >= 0 && s < syllables && s%lasts == 0 && t > 0 && t < lasts {
		return a + t, true
	}
	whole, ok := properties.composition[[2]rune{a, b}]
	return whole, ok
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"strings"
	"unicode/utf8"
)

// piece is a part of a text within which tokens are merged.
type piece struct {
	text string
	// first means that the piece begins the encoded text. Only the first pre-tokenizer gets this.
	first bool
}

// PreTokenizer cuts pieces into smaller ones, and may rewrite them.
type PreTokenizer struct {
	split func(dst []piece, p piece) []piece
	// writesBytes means that the pieces have to be written in the alphabet of bytes afterwards.
	writesBytes bool
}

// Behavior selects the treatment of the matches of a pattern.
type Behavior string

// These are the behaviors, by their names in files.
const (
	Removed            Behavior = "Removed"
	Isolated           Behavior = "Isolated"
	MergedWithPrevious Behavior = "MergedWithPrevious"
	MergedWithNext     Behavior = "MergedWithNext"
	Contiguous         Behavior = "Contiguous"
)

// Known reports whether there is such a behavior.
func (b Behavior) Known() bool {
	switch b {
	case Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous:
		return true
	}
	return false
}

// section is a match of a pattern, or the text between two matches.
type section struct {
	start, end int
	match      bool
}

// sections returns the matches and the texts between them that are not empty.
func sections(length int, matches func(found func(start, end int)), invert bool) []section {
	var all []section
	done := 0
	matches(func(start, end int) {
		if done < start {
			all = append(all, section{done, start, invert})
		}
		all = append(all, section{start, end, !invert})
		done = end
	})
	if done < length {
		all = append(all, section{done, length, invert})
	}
	return all
}

// arrange applies a behavior to sections.
func (b Behavior) arrange(all []section) []section {
	out := all[:0:0]
	joins := func(s section, previous bool) bool { return false }
	switch b {
	case Removed:
		for _, s := range all {
			if !s.match {
				out = append(out, s)
			}
		}
		return out
	case Isolated:
		return all
	case Contiguous:
		joins = func(s section, previous bool) bool { return s.match == previous }
	case MergedWithPrevious:
		joins = func(s section, previous bool) bool { return s.match && !previous }
	case MergedWithNext:
		return mergedWithNext(all)
	}
	previous := false
	for _, s := range all {
		if n := len(out); n > 0 && joins(s, previous) {
			out[n-1].end = s.end
		} else {
			out = append(out, s)
		}
		previous = s.match
	}
	return out
}

func mergedWithNext(all []section) []section {
	at := len(all)
	out := make([]section, at)
	previous := false
	for i := len(all) - 1; i >= 0; i-- {
		s := all[i]
		if s.match && !previous && at < len(out) {
			out[at].start = s.start
		} else {
			at--
			out[at] = s
		}
		previous = s.match
	}
	return out[at:]
}

// cut appends the sections of a piece that are not empty.
func cut(dst []piece, p piece, all []section) []piece {
	for _, s := range all {
		if s.start < s.end {
			dst = append(dst, piece{text: p.text[s.start:s.end]})
		}
	}
	return dst
}

// SplitBy cuts at the matches of a pattern.
func SplitBy(p Pattern, behavior Behavior, invert bool) PreTokenizer {
	return PreTokenizer{split: func(dst []piece, one piece) []piece {
		all := sections(len(one.text), func(found func(start, end int)) { p.matches(one.text, found) }, invert)
		return cut(dst, one, behavior.arrange(all))
	}}
}

// splitAt cuts at each character of a set.
func splitAt(is func(rune) bool, behavior Behavior) PreTokenizer {
	return PreTokenizer{split: func(dst []piece, one piece) []piece {
		return cut(dst, one, behavior.arrange(sections(len(one.text), func(found func(start, end int)) {
			for i, r := range one.text {
				if is(r) {
					found(i, i+utf8.RuneLen(r))
				}
			}
		}, false)))
	}}
}

// Digits separates numbers from other text, and digits from each other if individual is set.
func Digits(individual bool) PreTokenizer {
	if individual {
		return splitAt(with(traitNumeric), Isolated)
	}
	return splitAt(with(traitNumeric), Contiguous)
}

// Punctuation cuts at punctuation.
func Punctuation(behavior Behavior) PreTokenizer { return splitAt(with(traitPunctuation), behavior) }

// WhitespaceSplit removes white space.
func WhitespaceSplit() PreTokenizer { return splitAt(with(traitSpace), Removed) }

// CharDelimiterSplit removes a character.
func CharDelimiterSplit(delimiter rune) PreTokenizer {
	return splitAt(func(r rune) bool { return r == delimiter }, Removed)
}

// Whitespace removes white space, and cuts words from other characters.
func Whitespace() PreTokenizer {
	return PreTokenizer{split: func(dst []piece, one piece) []piece {
		start, kind := 0, trait(0)
		flush := func(end int, next trait) {
			if kind != traitSpace && start < end {
				dst = append(dst, piece{text: one.text[start:end]})
			}
			start, kind = end, next
		}
		for i, r := range one.text {
			next := trait(0)
			switch {
			case has(r, traitWord):
				next = traitWord
			case has(r, traitSpace):
				next = traitSpace
			}
			if next != kind {
				flush(i, next)
			}
		}
		flush(len(one.text), 0)
		return dst
	}}
}

// FixedLength cuts pieces of length characters.
func FixedLength(length int) PreTokenizer {
	return PreTokenizer{split: func(dst []piece, one piece) []piece {
		n, start := 0, 0
		for i := range one.text {
			if n == length {
				dst = append(dst, piece{text: one.text[start:i]})
				n, start = 0, i
			}
			n++
		}
		return append(dst, piece{text: one.text[start:]})
	}}
}

// Prefix says before which pieces Metaspace writes its character.
type Prefix string

// These are the schemes, by their names in files.
const (
	PrefixAlways Prefix = "always"
	PrefixFirst  Prefix = "first"
	PrefixNever  Prefix = "never"
)

// Metaspace writes a character for each space, and may cut before it.
func Metaspace(replacement rune, prefix Prefix, split bool) PreTokenizer {
	mark := string(replacement)
	cutter := splitAt(func(r rune) bool { return r == replacement }, MergedWithNext)
	return PreTokenizer{split: func(dst []piece, one piece) []piece {
		one.text = strings.ReplaceAll(one.text, " ", mark)
		if (prefix == PrefixAlways || prefix == PrefixFirst && one.first) && !strings.HasPrefix(one.text, mark) {
			one.text = mark + one.text
		}
		if !split {
			return append(dst, one)
		}
		return cutter.split(dst, one)
	}}
}

// ByteLevel cuts words by a pattern, unless the pattern is nil, and writes bytes in the alphabet.
func ByteLevel(prefixSpace bool, pattern *Pattern) PreTokenizer {
	return PreTokenizer{writesBytes: true, split: func(dst []piece, one piece) []piece {
		if prefixSpace && !strings.HasPrefix(one.text, " ") {
			one.text = " " + one.text
		}
		if pattern == nil {
			return append(dst, one)
		}
		return SplitBy(*pattern, Isolated, false).split(dst, one)
	}}
}

// written returns a step that also writes bytes in the alphabet, as the steps after it need.
func (p PreTokenizer) written() PreTokenizer {
	return PreTokenizer{split: func(dst []piece, one piece) []piece {
		start := len(dst)
		dst = p.split(dst, one)
		for i := range dst[start:] {
			dst[start+i].text = toAlphabet(dst[start+i].text)
		}
		return dst
	}}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package split

import "unicode/utf8"

// deepseek consists of three patterns, each applied to the pieces of the previous pattern: numbers of up to three
// digits, runs of Chinese and Japanese characters, and then
//
//	[ASCII punctuation][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | ?[\p{P}\p{S}]+[\r\n]* | white space
//
// The last pattern does not see beyond the ends of the pieces of the first two.
func deepseek(text string) int {
	first, size := at(text, 0)
	if first&number != 0 {
		return digitsEnd(text, 3)
	}
	s := segment{text: text, asian: size > 1 && isAsian(text)}
	if first&punctuation != 0 {
		return s.fromSymbol(size)
	}
	if end := s.word(first, size); end > 0 {
		return end
	}
	if text[0] == ' ' {
		if end := s.symbols(1); end > 1 {
			return end
		}
	}
	if first&space != 0 {
		return s.space(first)
	}
	return s.gap(size)
}

// segment is a piece of the first two patterns at the start of a text: a run of Chinese and Japanese characters, or of
// characters that are neither those nor numbers. Its end is found while it is read.
type segment struct {
	text  string
	asian bool
}

// at is the function at, limited to the segment.
func (s segment) at(i int) (class, int) {
	c, size := at(s.text, i)
	if c&number != 0 || (size > 1 && isAsian(s.text[i:])) != s.asian {
		return 0, 0
	}
	return c, size
}

// isAsian reports whether text begins with one of [\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff].
func isAsian(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r >= 0x3040 && r <= 0x30ff || r >= 0x4e00 && r <= 0x9fa5
}

func (s segment) after(i int, set class) int {
	if !s.asian {
		for i < len(s.text) && s.text[i] < utf8.RuneSelf && ascii[s.text[i]]&set != 0 {
			i++
		}
	}
	for {
		c, size := s.at(i)
		if c&set == 0 {
			return i
		}
		i += size
	}
}

// fromSymbol is the end of `[ASCII punctuation][A-Za-z]+`, else of `[\p{P}\p{S}]+[\r\n]*`.
func (s segment) fromSymbol(size int) int {
	if size == 1 {
		end := 1
		for end < len(s.text) && s.text[end]|0x20 >= 'a' && s.text[end]|0x20 <= 'z' {
			end++
		}
		if end > 1 {
			return end
		}
	}
	return s.symbols(0)
}

// symbols is the end of `[\p{P}\p{S}]+[\r\n]*`, or the start if no symbols are there.
func (s segment) symbols(start int) int {
	end := s.after(start, punctuation)
	if end == start || s.asian { // A newline is beyond the run.
		return end
	}
	return tailEnd(s.text, end, "\r\n")
}

// word is the end of `[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`, or 0 if no word begins there.
func (s segment) word(first class, size int) int {
	if s.text[0] == '\r' || s.text[0] == '\n' {
		return 0
	}
	if end := s.after(size, letter|mark); end > size || first&(letter|mark) != 0 {
		return end
	}
	return 0
}

// space is the end of white space. The pattern takes the end of the segment for the end of the text.
func (s segment) space(first class) int {
	end := after(s.text, 0, space)
	if _, size := s.at(end); size == 0 {
		return spaceEnd(s.text[:end], first)
	}
	return spaceEnd(s.text, first)
}

// gap is the end of text that the third pattern does not match, which is also a piece: its characters belong to no
// class. If a word follows, it excludes the last of them, which belongs to the word.
func (s segment) gap(size int) int {
	last := 0
	for end := size; ; {
		c, n := s.at(end)
		switch {
		case c&(letter|mark) != 0 && last > 0:
			return last
		case n == 0 || c != 0:
			return end
		}
		last = end
		end += n
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package split

import "strings"

// words is the pattern of Llama 3 and of Qwen, which differ in the characters of a word and in the number of digits of
// a piece:
//
//	contraction | [^\r\n\p{L}\p{N}]?[letters]+ | \p{N}{1,digits} | ?[^\s letters \p{N}]+[\r\n]* | white space
type words struct {
	letters class
	digits  int
}

func (w words) piece(text string) int {
	first, size := at(text, 0)
	if first&letter != 0 {
		return after(text, size, w.letters)
	}
	if first&number != 0 {
		return digitsEnd(text, w.digits)
	}
	if text[0] == '\'' {
		if n := contractionEnd(text, 0); n > 0 {
			return n
		}
	}
	if text[0] != '\r' && text[0] != '\n' {
		if next, n := at(text, size); next&w.letters != 0 {
			return after(text, size+n, w.letters)
		}
	}
	if first&w.letters != 0 {
		return size // It is a lone mark, and marks are letters.
	}
	return symbolsOrSpace(text, first, w.letters|number, "\r\n")
}

// symbolsOrSpace is the end of ` ?[^\s words]+[tail]*`, else of white space.
func symbolsOrSpace(text string, first, words class, tail string) int {
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if end := afterOther(text, start, words|space); end > start {
		return tailEnd(text, end, tail)
	}
	return spaceEnd(text, first)
}

// tailEnd is the end of a run of bytes of a set.
func tailEnd(text string, i int, set string) int {
	for i < len(text) && strings.IndexByte(set, text[i]) >= 0 {
		i++
	}
	return i
}

// spaceEnd is the end of `\s*[\r\n]+|\s+(?!\S)|\s+`: after the last newline of the run, or, if it has none, before its
// last character, which belongs to the word that follows. first is the class of the first character; if the character
// is not white space, nothing matches, and it is a piece of its own.
func spaceEnd(text string, first class) int {
	if first&space == 0 {
		_, size := at(text, 0)
		return size
	}
	newline, last, end := 0, 0, 0
	for {
		c, size := at(text, end)
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if b := text[last]; b == '\n' || b == '\r' {
			newline = end
		}
	}
	switch {
	case newline > 0:
		return newline
	case end < len(text) && last > 0:
		return last
	}
	return end
}

// digitsEnd is the end of a run of numbers, of up to most characters. The text begins with a number.
func digitsEnd(text string, most int) int {
	end := 0
	for range most {
		c, size := at(text, end)
		if c&number == 0 {
			break
		}
		end += size
	}
	return end
}

// contractionEnd is the end of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at an index, or the index itself if no contraction begins
// there. The only character beyond ASCII that equals one of these letters except for its case is U+017F, the long s.
func contractionEnd(text string, i int) int {
	if len(text) < i+2 || text[i] != '\'' {
		return i
	}
	switch text[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if len(text) > i+2 && text[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if len(text) > i+2 && text[i+2]|0x20 == 'l' {
			return i + 3
		}
	}
	if strings.HasPrefix(text[i+1:], "\u017f") {
		return i + 1 + len("\u017f")
	}
	return i
}

// gpt2 is the default pattern of byte-level tokenizers:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func gpt2(text string) int {
	if n := contractionEnd(text, 0); n > 0 && text[:n] == strings.ToLower(text[:n]) && text[1] < 0x80 {
		return n
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 {
		start = 1
	}
	switch first, size := at(text, start); {
	case first&letter != 0:
		return after(text, start+size, letter)
	case first&number != 0:
		return after(text, start+size, number)
	case first&space == 0:
		return afterOther(text, start+size, letter|number|space)
	}
	return blankEnd(text)
}

// blankEnd is the end of `\s+(?!\S)|\s+`. The text begins with white space.
func blankEnd(text string) int {
	last, end := 0, 0
	for {
		c, size := at(text, end)
		if c&space == 0 {
			break
		}
		last = end
		end += size
	}
	if end < len(text) && last > 0 {
		return last
	}
	return end
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// integerValue reads an integer literal.
func integerValue(text string) any {
	n, ok := new(big.Int).SetString(strings.ReplaceAll(text, "_", ""), 0)
	if !ok {
		n = new(big.Int) // 00 is 0 in Python, and octal to math/big, which reads it as 0 as well
	}
	return n
}

// escapes are the characters that a letter after a backslash stands for.
var escapes = map[byte]string{
	'\n': "", '\\': "\\",
	'\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// stringValue reads a string literal with its quotes.
func (p *parser) stringValue(t token) str {
	text := t.text[1 : len(t.text)-1]
	if !strings.Contains(text, "\\") {
		return lit(text)
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out.WriteByte(text[i])
			i++
			continue
		}
		i += 1 + p.escape(&out, text[i+1:], t.at)
	}
	return lit(out.String())
}

// octalDigits match the digits after a backslash for a character by its number.
var octalDigits = regexp.MustCompile("^[0-7]{1,3}")

// escape reads the escape sequence after a backslash and returns its length.
func (p *parser) escape(out *strings.Builder, text string, at int) int {
	c := text[0]
	if plain, ok := escapes[c]; ok {
		out.WriteString(plain)
		return 1
	}
	if width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; width > 0 {
		if len(text) <= width {
			p.lex.fail(at, "truncated escape in a string")
		}
		n, err := strconv.ParseUint(text[1:1+width], 16, 32)
		if err != nil || n > utf8.MaxRune {
			p.lex.fail(at, "invalid escape in a string")
		}
		out.WriteRune(rune(n))
		return 1 + width
	}
	if octal := octalDigits.FindString(text); octal != "" {
		n, _ := strconv.ParseUint(octal, 8, 32)
		out.WriteRune(rune(n))
		return len(octal)
	}
	if c == 'N' {
		p.lex.fail(at, "names of characters in strings are not supported")
	}
	r, size := utf8.DecodeRuneInString(text)
	out.WriteByte('\\')
	switch {
	case r > 0xFFFF:
		fmt.Fprintf(out, "U%08x", r)
	case r > 0xFF:
		fmt.Fprintf(out, "u%04x", r)
	case r >= utf8.RuneSelf:
		fmt.Fprintf(out, "x%02x", r)
	default:
		out.WriteRune(r)
	}
	return size
}

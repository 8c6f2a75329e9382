// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decoder rewrites tokens, which are joined after the last one.
type Decoder struct {
	apply func([]string) []string
	// growth is the factor by which the tokens may grow.
	growth float64
}

func (d Decoder) factor() float64 { return d.growth }

// each returns a decoder that rewrites each token.
func each(growth float64, rewrite func(i int, token string) string) Decoder {
	return Decoder{growth: growth, apply: func(tokens []string) []string {
		for i, token := range tokens {
			tokens[i] = rewrite(i, token)
		}
		return tokens
	}}
}

// BytesOf reads the alphabet of bytes. lossy converts the bytes, which may not be UTF-8, to text.
func BytesOf(lossy func([]byte) string) Decoder {
	return Decoder{growth: 3, apply: func(tokens []string) []string {
		var text []byte
		for _, token := range tokens {
			start := len(text)
			for _, r := range token {
				b, ok := letters[r]
				if !ok {
					text = append(text[:start], token...)
					break
				}
				text = append(text, b)
			}
		}
		return []string{lossy(text)}
	}}
}

// SpacesOf replaces the character that Metaspace writes for spaces by a space. In the first token, it removes the
// character if Metaspace writes a prefix.
func SpacesOf(replacement rune, prefix Prefix) Decoder {
	return each(1, func(i int, token string) string {
		space := " "
		if i == 0 && prefix != PrefixNever {
			space = ""
		}
		return strings.ReplaceAll(token, string(replacement), space)
	})
}

// ByteFallback reads tokens such as <0x0A>. If a row of them is not UTF-8, each becomes U+FFFD.
func ByteFallback() Decoder {
	return Decoder{growth: 1, apply: func(tokens []string) []string {
		var out []string
		var row []byte
		flush := func() {
			if utf8.Valid(row) {
				if len(row) > 0 {
					out = append(out, string(row))
				}
			} else {
				for range row {
					out = append(out, string(utf8.RuneError))
				}
			}
			row = row[:0]
		}
		for _, token := range tokens {
			if b, ok := byteOf(token); ok {
				row = append(row, b)
				continue
			}
			flush()
			out = append(out, token)
		}
		flush()
		return out
	}}
}

// byteOf reads a token such as <0x0A>. Its digits may be in lower case, and the first may be a plus, as in the
// reference.
func byteOf(token string) (byte, bool) {
	if len(token) != len("<0x00>") || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(token[3:5], "+"), 16, 8)
	return byte(n), err == nil
}

// Fuse joins all tokens.
func Fuse() Decoder {
	return Decoder{growth: 1, apply: func(tokens []string) []string { return []string{strings.Join(tokens, "")} }}
}

// ReplaceIn writes content for each match of a pattern in a token.
func ReplaceIn(p Pattern, content string) Decoder {
	return each(p.growth(content), func(_ int, token string) string { return p.replace(token, content) })
}

// StripOf removes a character from both ends of each token, at most start and stop times.
func StripOf(content rune, start, stop int) Decoder {
	mark := string(content)
	return each(1, func(_ int, token string) string {
		for range start {
			rest, ok := strings.CutPrefix(token, mark)
			if !ok {
				break
			}
			token = rest
		}
		for range stop {
			rest, ok := strings.CutSuffix(token, mark)
			if !ok {
				break
			}
			token = rest
		}
		return token
	})
}

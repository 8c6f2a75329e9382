// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "unicode/utf8"

// alphabet maps the characters with which byte-level tokenizer files write bytes: bytes that are printable in Latin-1
// are written as themselves, the others, in order, as the characters from U+0100 on. The value of a character is its
// byte plus one, or 0 if it does not stand for a byte.
var alphabet = newAlphabet()

func newAlphabet() [0x200]uint16 {
	var alphabet [0x200]uint16
	next := 0x100
	for b := range 0x100 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			alphabet[b] = uint16(b) + 1
			continue
		}
		alphabet[next] = uint16(b) + 1
		next++
	}
	return alphabet
}

// appendBytes appends the bytes that a token of a file stands for. A token with a character that is not in the
// alphabet stands for its UTF-8, and ok is false: text is never split into it.
func appendBytes(dst, token []byte) (bytes []byte, ok bool) {
	start := len(dst)
	for i := 0; i < len(token); {
		if b := token[i]; b >= '!' && b <= '~' {
			dst = append(dst, b)
			i++
			continue
		}
		r, size := utf8.DecodeRune(token[i:])
		if int(r) >= len(alphabet) || alphabet[r] == 0 {
			return append(dst[:start], token...), false
		}
		dst = append(dst, byte(alphabet[r]-1))
		i += size
	}
	return dst, true
}

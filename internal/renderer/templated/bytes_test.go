// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// byteTokens returns a tokenizer of single bytes with added tokens. Tokens whose name begins with a plus are not
// special.
func byteTokens(t *testing.T, special ...string) tokenizer.Tokenizer {
	t.Helper()
	type object = map[string]any
	vocabulary, next := object{}, rune(256)
	for b := range 256 {
		letter := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad { // These have other letters in the byte-level alphabet.
			letter = next
			next++
		}
		vocabulary[string(letter)] = b
	}
	added := make([]object, len(special))
	for i, name := range special {
		name, other := strings.CutPrefix(name, "+")
		added[i] = object{"id": 256 + i, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
			"normalized": false, "special": !other}
	}
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	file, err := json.Marshal(object{"version": "1.0", "added_tokens": added, "pre_tokenizer": level, "decoder": level,
		"model": object{"type": "BPE", "vocab": vocabulary, "merges": []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

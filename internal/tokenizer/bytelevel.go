// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

// byteIDs is the number of ids that stand for a byte. The special tokens follow them.
const byteIDs = 256

// newByteLevel returns a tokenizer without merges: the id of each byte is its value, and the special tokens follow.
func newByteLevel() Tokenizer {
	b := newBuilder(&BPE{scan: func(text string) int { return len(text) }})
	for i := range byteIDs {
		b.text = append(b.text, byte(i))
		b.spans = append(b.spans, span{start: uint32(i), end: uint32(i) + 1})
	}
	b.next = byteIDs
	var tokens []addedToken
	for i, name := range []string{"<|end|>", "<|bos|>", "<|pad|>", "<|reserved|>"} {
		tokens = append(tokens, addedToken{ID: int32(byteIDs + i), Content: name, Special: true})
	}
	for _, build := range []error{b.index(nil), b.indexMerges(nil), b.addAll(tokens)} {
		if build != nil {
			panic(build) // The table above is wrong.
		}
	}
	return b.finish()
}

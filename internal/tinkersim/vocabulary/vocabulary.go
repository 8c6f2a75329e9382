// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package vocabulary reads the vocabulary of another model, so that tinkersim can serve its own model with
// that model's tokens.
//
// The network works on bytes. A byte-level vocabulary has an id for each of the 256 bytes, and every other
// token is a string of bytes; so a token stands for its bytes, and an added token for the bytes of its name.
// The token that ends a turn is the exception: it corresponds to the model's own end token, in both directions.
//
// The package decodes ids but does not encode text: clients do that with a tokenizer of their own, and tests
// of that tokenizer must not depend on the same code here.
package vocabulary

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// turnEndTokens are the tokens that end a turn in different model families. The first that a vocabulary has is used.
var turnEndTokens = []string{
	"<|im_end|>",          // Qwen, Kimi, Nemotron
	"<|eot_id|>",          // Llama 3
	"<|return|>",          // gpt-oss, which also has <|end|>
	"<｜end▁of▁sentence｜>", // DeepSeek
	"<|end|>",             // tinkersim itself
}

// Vocabulary maps the ids of a model to text. It does not change and is safe for concurrent use.
type Vocabulary struct {
	// spelling has the native tokens of each id, or nil for an id without any.
	spelling [][]int32
	// bytes has the id of each byte.
	bytes [256]int32
	end   int32
	// endName is the text of the token that ends a turn.
	endName string
	// files are the files of the repository at a hub by name, and digest is the digest of the loaded file.
	files  map[string][]byte
	digest [sha256.Size]byte
}

// Spell implements model.Vocabulary.
func (v *Vocabulary) Spell(id int32) []int32 {
	if id < 0 || int(id) >= len(v.spelling) {
		return nil
	}
	return v.spelling[id]
}

// Token implements model.Vocabulary: bytes and the end token have an id, the model's other tokens have none.
func (v *Vocabulary) Token(native int32) (id int32, ok bool) {
	switch {
	case native >= 0 && native < 256:
		return v.bytes[native], true
	case native == model.TokenEnd:
		return v.end, true
	default:
		return 0, false
	}
}

// Size returns the highest id plus one.
func (v *Vocabulary) Size() int { return len(v.spelling) }

// End returns the id of the token that ends a turn.
func (v *Vocabulary) End() int32 { return v.end }

// EndName returns the text of that token.
func (v *Vocabulary) EndName() string { return v.endName }

// Digest returns the SHA-256 sum of the file that was loaded.
func (v *Vocabulary) Digest() [sha256.Size]byte { return v.digest }

// File returns a file of the model's repository as it was loaded, or nil if no file has that name.
func (v *Vocabulary) File(name string) []byte { return v.files[name] }

// token is an entry of a vocabulary.
type token struct {
	id   int32
	text string
	// added says that the text is the name of an added token, which takes precedence over others with the same id.
	added bool
}

// mostIDs is the largest number of ids, so that a damaged file cannot exhaust the memory.
const mostIDs = 1 << 21

// build returns a vocabulary with these entries.
func build(tokens []token) (*Vocabulary, error) {
	v := &Vocabulary{end: -1}
	for i := range v.bytes {
		v.bytes[i] = -1
	}
	end := len(turnEndTokens)
	for _, t := range tokens {
		if t.id < 0 || t.id >= mostIDs {
			return nil, fmt.Errorf("the id %d of token %q is not from 0 to %d", t.id, t.text, mostIDs-1)
		}
		if len(t.text) > model.MaxSpelling {
			return nil, fmt.Errorf("the token with id %d has %d bytes, which is more than %d", t.id, len(t.text),
				model.MaxSpelling)
		}
		for int(t.id) >= len(v.spelling) {
			v.spelling = append(v.spelling, nil)
		}
		if t.added {
			end = v.addEnd(t, end)
		}
	}
	for _, added := range []bool{false, true} {
		for _, t := range tokens {
			if t.added == added && t.text != "" && t.id != v.end {
				v.add(t)
			}
		}
	}
	return v, v.check()
}

// addEnd makes the token the end of a turn if turnEndTokens has it before rank, and returns the new rank.
func (v *Vocabulary) addEnd(t token, rank int) int {
	for better, name := range turnEndTokens[:rank] {
		if t.text == name {
			v.end, v.endName = t.id, t.text
			return better
		}
	}
	return rank
}

func (v *Vocabulary) add(t token) {
	native := make([]int32, len(t.text))
	for i := range len(t.text) {
		native[i] = int32(t.text[i])
	}
	v.spelling[t.id] = native
	if len(native) == 1 && !t.added {
		v.bytes[native[0]] = t.id
	}
}

// check checks that there is an end token and a token for each byte, and maps the end token.
func (v *Vocabulary) check() error {
	if v.end < 0 {
		return fmt.Errorf("no added token ends a turn; known are %s", strings.Join(turnEndTokens, " "))
	}
	v.spelling[v.end] = []int32{model.TokenEnd}
	for b, id := range v.bytes {
		if id < 0 {
			return fmt.Errorf("the vocabulary is not byte-level: it has no token for the byte %#02x", b)
		}
	}
	return nil
}

var _ model.Vocabulary = (*Vocabulary)(nil)

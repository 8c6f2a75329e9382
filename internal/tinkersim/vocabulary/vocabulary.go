// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package vocabulary reads the vocabulary of another model, so that tinkersim can serve its own one under
// that model's tokens.
//
// The network knows bytes. A byte-level vocabulary has an id for each of the 256 bytes, and every other
// token is a string of them; so a token is read as its bytes, and an added token as those of its name. The
// token that ends a turn is the exception: it stands for the model's own end, both ways.
//
// It knows what ids mean and not how text becomes ids: that is for whoever asks, and a mistake there must
// not be made here, too.
package vocabulary

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// endNames are tokens that end a turn, by the families that have them. The first that there is counts.
var endNames = []string{
	"<|im_end|>",          // Qwen, Kimi, Nemotron
	"<|eot_id|>",          // Llama 3
	"<|return|>",          // gpt-oss, which has <|end|>, too
	"<｜end▁of▁sentence｜>", // DeepSeek
	"<|end|>",             // tinkersim itself
}

// Vocabulary is what the ids of a model mean. It does not change and is safe for concurrent use.
type Vocabulary struct {
	// spelling has the own tokens that an id is read as, nil where there is none.
	spelling [][]int32
	// bytes has the id of each byte.
	bytes [256]int32
	end   int32
	// endName is the text of the end.
	endName string
	// files are those of the repository at a hub, by their names, and digest is that of the one that was read.
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

// Token implements model.Vocabulary: bytes and the end have an id, the model's other tokens have none.
func (v *Vocabulary) Token(own int32) (id int32, ok bool) {
	switch {
	case own >= 0 && own < 256:
		return v.bytes[own], true
	case own == model.TokenEnd:
		return v.end, true
	default:
		return 0, false
	}
}

// Size is one more than the highest id.
func (v *Vocabulary) Size() int { return len(v.spelling) }

// End is the id of the token that ends a turn.
func (v *Vocabulary) End() int32 { return v.end }

// EndName is the text of that token.
func (v *Vocabulary) EndName() string { return v.endName }

// Digest is the SHA-256 sum of the file that was loaded.
func (v *Vocabulary) Digest() [sha256.Size]byte { return v.digest }

// File gives a file of the model's repository as it was loaded; nil if there is none of that name.
func (v *Vocabulary) File(name string) []byte { return v.files[name] }

// token is an entry of a vocabulary.
type token struct {
	id   int32
	text string
	// added tokens have a name for their text; they win over others of the same id.
	added bool
}

// mostIDs keeps a damaged file from asking for all memory.
const mostIDs = 1 << 21

// build makes a vocabulary of its entries.
func build(tokens []token) (*Vocabulary, error) {
	v := &Vocabulary{end: -1}
	for i := range v.bytes {
		v.bytes[i] = -1
	}
	end := len(endNames)
	for _, t := range tokens {
		if t.id < 0 || t.id >= mostIDs {
			return nil, fmt.Errorf("the id %d of token %q is not from 0 to %d", t.id, t.text, mostIDs-1)
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

// addEnd notes the token as the end of a turn if it is a better one than that of the rank before.
func (v *Vocabulary) addEnd(t token, rank int) int {
	for better, name := range endNames[:rank] {
		if t.text == name {
			v.end, v.endName = t.id, t.text
			return better
		}
	}
	return rank
}

func (v *Vocabulary) add(t token) {
	own := make([]int32, len(t.text))
	for i := range len(t.text) {
		own[i] = int32(t.text[i])
	}
	v.spelling[t.id] = own
	if len(own) == 1 && !t.added {
		v.bytes[own[0]] = t.id
	}
}

// check demands an end and all bytes, and gives the end its meaning.
func (v *Vocabulary) check() error {
	if v.end < 0 {
		return fmt.Errorf("no added token ends a turn; known are %s", strings.Join(endNames, " "))
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

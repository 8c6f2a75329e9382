// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package general encodes and decodes by the steps of a tokenizer.json for which package tokenizer has no program: BPE
// of characters or bytes, with any normalisers, splits and decoders that the reference (the package tokenizers) has
// for BPE. It is slower than those programs, and gives the same ids. Package tokenizer reads the files.
//
// The programs of package tokenizer read BPE with every byte in its vocabulary, NFC or no normaliser, a Split by a
// pattern of package split (compared as text; Isolated, not inverted), ByteLevel, and added tokens without single_word,
// lstrip and rstrip.
//
// As in the reference:
//
//   - Prepend, and Metaspace with prepend_scheme always, write their prefix before each piece of a prompt, and after
//     each added token.
//   - A decoder with Strip, or Metaspace, leaves out the first space, so that the text of a list of ids is not the sum
//     of its parts. Renderers decode whole replies.
//   - If a row of byte tokens is not UTF-8 as a whole, each token of the row becomes U+FFFD.
//   - Without unk_token and byte fallback, characters that the vocabulary lacks are left out.
//
// Unlike in the reference, text never becomes a special token of the vocabulary, not even as a whole piece with
// ignore_merges, and offsets are not computed.
//
// Files and texts may be hostile: a search for a pattern takes linear time, and the steps of a tokenizer cannot make a
// text longer than maxGrowth times.
package general

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// maxGrowth limits how many times as long the steps of a tokenizer can make a text. The forms of compatibility of
// Unicode make it up to 11 times as long, and a space that becomes U+2581 is three times as long.
const maxGrowth = 300

// grower is a step that may make a text longer.
type grower interface{ factor() float64 }

// CheckGrowth returns an error if the steps together may make a text too long.
func CheckGrowth[G grower](steps []G) error {
	all := 1.0
	for _, step := range steps {
		all *= step.factor()
	}
	if all > maxGrowth {
		return fmt.Errorf("the steps can make a text %.0f times as long, and %d times are supported: shorten what they write",
			all, maxGrowth)
	}
	return nil
}

// Found is an added token in a text.
type Found struct {
	Start, End int
	ID         int32
	Special    bool
}

// Added is a token that is found in text before it is split.
type Added struct {
	ID      int32
	Content string
	// Text is the decoded text of the token: its content, normalised if the token is matched in normalised text.
	Text    string
	Special bool
	// SingleWord tokens are not found directly beside other characters of a word.
	SingleWord bool
	// LStrip and RStrip tokens include the white space around them.
	LStrip, RStrip bool
}

// Finder returns the longest of the added tokens that begin first in a text, from an index on.
type Finder func(text string, from int) (Found, bool)

// Config has the parts of a tokenizer.
type Config struct {
	Normalizers   []Normalizer
	PreTokenizers []PreTokenizer
	Decoders      []Decoder
	Model         Model
	Added         []Added
	// FindRaw finds added tokens in text that is not yet normalised, FindNormalized afterwards. They are nil if there are
	// no such tokens.
	FindRaw, FindNormalized Finder
}

// Tokenizer turns text into ids and back. It is safe for concurrent use.
type Tokenizer struct {
	config Config
	model  *model
	// writesBytes means that the last pre-tokenizer is ByteLevel. Its alphabet is written when pieces are looked up.
	writesBytes bool
	added       map[int32]Added
	tokens      map[int32]string
	special     map[int32]bool
	ids         map[string]int32
	// cache has the ids of pieces, by their hash.
	cache [cacheSize]atomic.Pointer[cached]
}

// New makes a tokenizer, which takes ownership of the vocabulary. The ids of tokens must differ, and the tokens that
// merges and added tokens name must exist. Text becomes a special token only if AppendEncode itself finds the token:
// New hides special tokens of the vocabulary from the model. The reference would write such a token for text that is
// the whole piece.
func New(config Config) *Tokenizer {
	hidden := map[int32]string{}
	for _, a := range config.Added {
		if a.Special {
			hidden[a.ID] = a.Content
		}
	}
	t := &Tokenizer{config: config, model: newModel(config.Model, hidden), added: map[int32]Added{},
		special: map[int32]bool{}, ids: map[string]int32{}}
	t.tokens = t.model.tokens
	special := map[string]bool{}
	for _, a := range config.Added {
		t.added[a.ID], t.tokens[a.ID], t.ids[a.Content] = a, a.Text, a.ID
		special[a.Content] = special[a.Content] || a.Special
	}
	for _, a := range config.Added {
		t.special[a.ID] = special[a.Text]
	}
	t.config.PreTokenizers = slices.Clone(config.PreTokenizers)
	for i, step := range t.config.PreTokenizers {
		switch last := i == len(config.PreTokenizers)-1; {
		case step.writesBytes && last:
			t.writesBytes = true
		case step.writesBytes:
			t.config.PreTokenizers[i] = step.written()
		}
	}
	return t
}

// Special returns the id of an added token by its name.
func (t *Tokenizer) Special(name string) (id int32, ok bool) {
	id, ok = t.ids[name]
	return id, ok
}

// IsSpecial reports whether an id belongs to a special added token, which text for people omits.
// As in the reference, only a token that is decoded to its name is special in this sense.
func (t *Tokenizer) IsSpecial(id int32) bool { return t.special[id] }

// Where says whether a special token is recognised, by its place in a text.
type Where func(start, end int) bool

// Everywhere recognises all special tokens, and Nowhere none.
func Everywhere(int, int) bool { return true }

// Nowhere recognises no special token.
func Nowhere(int, int) bool { return false }

// AppendEncode appends the ids of text, which must be valid UTF-8. It recognises special added tokens at the places
// for which specials returns true, and all other added tokens if others is set.
//
// The place of a special token in normalised text is known only if normalization has not changed the part of the text.
// In a changed part, such a token is recognised only if specials returns true for the whole part.
func (t *Tokenizer) AppendEncode(dst []int32, text string, specials Where, others bool) []int32 {
	token := func(id int32) { dst = append(dst, id) }
	t.between(text, t.config.FindRaw, specials, others, func(part string, at int) {
		written := part
		for _, n := range t.config.Normalizers {
			written = n.apply(written)
		}
		inside := func(start, end int) bool { return specials(at+start, at+end) }
		if written != part {
			whole := specials(at, at+len(part))
			inside = func(int, int) bool { return whole }
		}
		t.between(written, t.config.FindNormalized, inside, others, func(part string, start int) {
			dst = t.appendPieces(dst, piece{text: part, first: at == 0 && start == 0})
		}, token)
	}, token)
	return dst
}

// between calls plain with each part of the text between added tokens and its place, and token with the id of each
// added token.
func (t *Tokenizer) between(text string, find Finder, specials Where, others bool, plain func(part string, at int),
	token func(id int32)) {
	done := 0
	for at := 0; find != nil; {
		found, ok := find(text, at)
		if !ok {
			break
		}
		at = found.End
		if found.Special && !specials(found.Start, found.End) || !found.Special && !others {
			continue
		}
		a := t.added[found.ID]
		if a.SingleWord && !apart(text, found) {
			continue
		}
		start, end := found.Start, found.End
		if a.LStrip {
			start = max(len(strings.TrimRightFunc(text[:start], isSpace)), done)
		}
		if a.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], isSpace))
		}
		if done < start {
			plain(text[done:start], done)
		}
		token(found.ID)
		done = end
	}
	if done < len(text) {
		plain(text[done:], done)
	}
}

// appendPieces appends the ids of text without added tokens.
func (t *Tokenizer) appendPieces(dst []int32, text piece) []int32 {
	if text.text == "" {
		return dst
	}
	pieces, next := []piece{text}, []piece(nil)
	for _, step := range t.config.PreTokenizers {
		next = next[:0]
		for _, p := range pieces {
			next = step.split(next, p)
		}
		pieces, next = next, pieces
	}
	for _, p := range pieces {
		dst = t.appendPiece(dst, p.text)
	}
	return dst
}

// appendPiece appends the ids of a piece.
func (t *Tokenizer) appendPiece(dst []int32, text string) []int32 {
	slot := t.slot(text)
	if slot != nil {
		if known := slot.Load(); known != nil && known.text == text {
			return append(dst, known.ids...)
		}
	}
	written := text
	if t.writesBytes {
		written = toAlphabet(text)
	}
	begin := len(dst)
	dst = t.model.append(dst, written)
	if slot != nil {
		slot.Store(&cached{text: strings.Clone(text), ids: append([]int32(nil), dst[begin:]...)})
	}
	return dst
}

// Decode returns the text of ids. An id that the vocabulary lacks is an error.
func (t *Tokenizer) Decode(ids []int32) (string, error) {
	tokens := make([]string, len(ids))
	for i, id := range ids {
		token, ok := t.tokens[id]
		if !ok {
			return "", fmt.Errorf("decoding token %d of %d: the vocabulary has no id %d", i, len(ids), id)
		}
		tokens[i] = token
	}
	for _, d := range t.config.Decoders {
		tokens = d.apply(tokens)
	}
	return strings.Join(tokens, ""), nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"bytes"
	"strconv"
)

// builder builds a tokenizer from the parts of a file.
type builder struct {
	t *BPE
	// text has the bytes of all tokens, and spans the place of each id's bytes.
	text  []byte
	spans []span
	// odd has the tokens with a character that is not in the alphabet. Text is never split into them.
	odd map[string]int32
	// next is the id of the next added token that is not in the vocabulary.
	next int32
}

func newBuilder(t *BPE) *builder {
	t.specials, t.special = map[string]int32{}, map[int32]bool{}
	return &builder{t: t, odd: map[string]int32{}}
}

// settled has the fields of a model whose values must have no effect.
var settled = map[string]func([]byte) error{
	"type":                      only(`"BPE"`),
	"dropout":                   only(`null`, `0.0`, `0`),
	"continuing_subword_prefix": only(`null`, `""`),
	"end_of_word_suffix":        only(`null`, `""`),
	// Every byte is a token, so no text is ever unknown.
	"unk_token":     func([]byte) error { return nil },
	"fuse_unk":      only(`true`, `false`),
	"byte_fallback": only(`true`, `false`),
	"ignore_merges": only(`true`, `false`),
}

func (b *builder) readModel(value []byte) error {
	if value == nil {
		return problem("the field is missing")
	}
	model, err := fields(&cursor{data: value}, "type", "dropout", "unk_token", "continuing_subword_prefix",
		"end_of_word_suffix",
		"fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges")
	if err != nil {
		return err
	}
	for _, field := range []string{"vocab", "merges"} {
		if model[field] == nil {
			return within(field, problem("the field is missing"))
		}
	}
	for field, check := range settled {
		if err := check(model[field]); err != nil {
			return within(field, err)
		}
	}
	b.t.wholeWins = string(model["ignore_merges"]) == "true"
	if err := b.readVocab(model["vocab"]); err != nil {
		return within("vocab", err)
	}
	return within("merges", b.readMerges(model["merges"]))
}

// readVocab reads the tokens, in the byte-level alphabet, and their ids.
func (b *builder) readVocab(value []byte) error {
	c := &cursor{data: value}
	b.text = make([]byte, 0, len(value)/2)
	hidden := map[int32]bool{}
	err := c.object(func(key []byte) error {
		start := len(b.text)
		var ok bool
		b.text, ok = appendBytes(b.text, key)
		id, err := c.integer()
		if err == nil {
			err = b.place(id, start)
		}
		if err == nil && !ok {
			hidden[id] = true
			b.odd[string(key)] = id
		}
		if err != nil {
			return within("["+strconv.Quote(string(key))+"]", err)
		}
		b.next++
		return nil
	})
	if err != nil {
		return err
	}
	return b.index(hidden)
}

// place assigns the bytes of the text from start on to an id.
func (b *builder) place(id int32, start int) error {
	switch {
	case id < 0 || id > maxID:
		return problem("id %d is beyond %d, the highest that is supported", id, maxID)
	case start == len(b.text):
		return problem("the token of id %d is empty", id)
	}
	for int(id) >= len(b.spans) {
		b.spans = append(b.spans, span{})
	}
	if s := b.spans[id]; s.start != s.end {
		return problem("id %d is also the id of %q", id, b.text[s.start:s.end])
	}
	b.spans[id] = span{start: uint32(start), end: uint32(len(b.text))}
	return nil
}

// index builds the vocabulary of the tokens read so far, so that they can be found by their bytes.
func (b *builder) index(hidden map[int32]bool) error {
	vocabulary, twice, ok := newVocabulary(string(b.text), b.spans, hidden)
	if !ok {
		return problem("ids %d and %d have the same bytes", twice[0], twice[1])
	}
	b.t.vocabulary = vocabulary
	for i := range b.t.byteIDs {
		id, ok := vocabulary.find(string([]byte{byte(i)}))
		if !ok {
			return problem("no token is the byte 0x%02x; a vocabulary must have every byte", i)
		}
		b.t.byteIDs[i] = id
	}
	return nil
}

// readMerges reads the pairs of tokens that are merged, in the order of their ranks. A pair is a list of two tokens,
// or a string of two tokens with a space between them.
func (b *builder) readMerges(value []byte) error {
	c := &cursor{data: value}
	merges := make([]merge, 0, bytes.Count(value, []byte{'"'})/4)
	var first, second []byte
	err := c.array(func(int) (err error) {
		if c.next() == '[' {
			first, second, err = b.listed(c, first[:0], second[:0])
		} else {
			first, second, err = b.spaced(c, first[:0], second[:0])
		}
		if err != nil {
			return err
		}
		m, err := b.join(first, second)
		merges = append(merges, m)
		return err
	})
	if err != nil {
		return err
	}
	return b.indexMerges(merges)
}

// indexMerges builds the table of pairs. Their ranks are their positions in the list.
func (b *builder) indexMerges(merges []merge) error {
	if len(merges) > maxRank {
		return problem("there are %d merges, at most %d are supported", len(merges), maxRank)
	}
	b.t.pairs = newPairs(len(merges), len(merges))
	for i, m := range merges {
		if !b.t.pairs.add(m.first, m.second, uint32(i), m.into) {
			return within("["+strconv.Itoa(i)+"]", problem("the tokens %d and %d are merged before", m.first, m.second))
		}
	}
	b.t.pairs.indexBytes(&b.t.byteIDs)
	return nil
}

// listed reads a list of two tokens.
func (b *builder) listed(c *cursor, first, second []byte) ([]byte, []byte, error) {
	n := 0
	err := c.array(func(i int) error {
		token, err := c.str()
		ok := true
		switch n++; i {
		case 0:
			first, ok = appendBytes(first, token)
		case 1:
			second, ok = appendBytes(second, token)
		}
		if err == nil && !ok {
			return problem("%q is not in the byte-level alphabet", token)
		}
		return err
	})
	if err == nil && n != 2 {
		err = problem("%d tokens, want 2", n)
	}
	return first, second, err
}

// spaced reads a string of two tokens.
func (b *builder) spaced(c *cursor, first, second []byte) ([]byte, []byte, error) {
	text, err := c.str()
	if err != nil {
		return nil, nil, err
	}
	one, two, ok := bytes.Cut(text, []byte(" "))
	if ok {
		first, ok = appendBytes(first, one)
	}
	if ok {
		second, ok = appendBytes(second, two)
	}
	if !ok {
		return nil, nil, problem("%q is not two tokens of the byte-level alphabet with a space between", text)
	}
	return first, second, nil
}

// join finds two tokens and the token that they form together.
func (b *builder) join(first, second []byte) (m merge, err error) {
	var ok bool
	if m.first, ok = b.t.vocabulary.find(string(first)); !ok {
		return m, problem("the vocabulary has no %q", first)
	}
	if m.second, ok = b.t.vocabulary.find(string(second)); !ok {
		return m, problem("the vocabulary has no %q", second)
	}
	whole := append(first, second...)
	if m.into, ok = b.t.vocabulary.find(string(whole)); !ok {
		return m, problem("the vocabulary has no %q, which %q and %q form together", whole, first, second)
	}
	return m, nil
}

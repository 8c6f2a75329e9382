// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// vocabulary is a tokenizer with the tokens that a format frames messages with.
type vocabulary struct {
	tokens tokenizer.Tokenizer
	// match is how text of messages is read.
	match tokenizer.Match
	ids   map[string]int32
	// pieces that were tokenised before.
	pieces memo
}

// newVocabulary looks up the tokens that a format cannot do without.
func newVocabulary(tokens tokenizer.Tokenizer, match tokenizer.Match, names ...string) (*vocabulary, error) {
	v := &vocabulary{tokens: tokens, match: match, ids: map[string]int32{}}
	for _, name := range names {
		id, ok := tokens.Special(name)
		if !ok {
			return nil, fmt.Errorf("the tokenizer has no token %s: take the renderer of the model that the tokenizer belongs to", name)
		}
		v.ids[name] = id
	}
	return v, nil
}

// id of one of the tokens that were looked up. Any other is a mistake of the format's author.
func (v *vocabulary) id(name string) int32 {
	id, ok := v.ids[name]
	if !ok {
		panic("renderer: the format uses token " + name + " and has not asked for it")
	}
	return id
}

// chunks puts ids together of pieces that are tokenised apart. Text is gathered until a token or a cut
// follows: what is tokenised as one string can merge across the places where its parts meet.
type chunks struct {
	vocabulary *vocabulary
	ids        []int32
	run        []byte
	// output is where the output of the last message begins, after its header.
	output int
}

// token ends the text so far and adds a token by its name.
func (c *chunks) token(name string) *chunks {
	c.cut()
	c.ids = append(c.ids, c.vocabulary.id(name))
	return c
}

// text adds text. Names of special tokens in it are text.
func (c *chunks) text(text string) *chunks {
	c.run = append(c.run, text...)
	return c
}

// cut ends the text so far: what follows is tokenised apart.
func (c *chunks) cut() *chunks {
	if len(c.run) > 0 {
		c.ids = c.vocabulary.appendPiece(c.ids, c.run)
		c.run = c.run[:0]
	}
	return c
}

// appendPiece adds the ids of text that is tokenised by itself. A conversation that goes on has almost all of
// its pieces from before.
func (v *vocabulary) appendPiece(ids []int32, text []byte) []int32 {
	if known, ok := v.pieces.get(text); ok {
		return append(ids, known...)
	}
	piece := string(text)
	begin := len(ids)
	ids = v.tokens.AppendEncode(ids, piece, v.match)
	v.pieces.put(piece, ids[begin:])
	return ids
}

// body ends the header of a message.
func (c *chunks) body() *chunks {
	c.cut()
	c.output = len(c.ids)
	return c
}

// put adds ids as they are.
func (c *chunks) put(ids ...int32) *chunks {
	c.cut()
	c.ids = append(c.ids, ids...)
	return c
}

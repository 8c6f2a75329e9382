// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"crypto/sha256"
	"fmt"
	"sort"

	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// Vocabulary is a tokenizer together with the tokens with which a format frames messages.
type Vocabulary struct {
	Tokens tokenizer.Tokenizer
	// match selects how the text of messages is read.
	match tokenizer.Match
	ids   map[string]int32
	// pieces are the ids of text that was tokenised before.
	pieces memo
}

// NewVocabulary looks up the tokens that a format needs.
func NewVocabulary(tokens tokenizer.Tokenizer, match tokenizer.Match, names ...string) (*Vocabulary, error) {
	v := &Vocabulary{Tokens: tokens, match: match, ids: map[string]int32{}}
	for _, name := range names {
		id, ok := tokens.Special(name)
		if !ok {
			return nil, fmt.Errorf("the tokenizer has no token %s: take the renderer of the model that the tokenizer belongs to",
				name)
		}
		v.ids[name] = id
	}
	return v, nil
}

// ID returns the id of a token that was looked up. Asking for another token is a bug of the format.
func (v *Vocabulary) ID(name string) int32 {
	id, ok := v.ids[name]
	if !ok {
		panic("renderer: the format uses token " + name + " and has not asked for it")
	}
	return id
}

// Writer joins the ids of pieces that are tokenised apart. It gathers text until Token or Cut ends the piece, because
// text that is tokenised as one string can merge across the places where its parts meet.
type Writer struct {
	vocabulary *Vocabulary
	// last is the conversation's last prompt. If it is nil, pieces stays empty.
	last   *renderer.Rendered
	pieces []renderer.Piece
	IDs    []int32
	run    []byte
	// Output is the index in IDs at which the content of the last message begins, after its header.
	Output int
	// end is the index in IDs at which the content of the last message ends, if something follows that is not part of the
	// message; otherwise it is 0.
	end int
	// head is the number of bytes of the piece that belong to the header of the message, if its content is tokenised
	// together with them.
	head int
	// texts records the pieces of text, if it is not nil.
	texts *[]writtenText
}

// NewWriter returns a writer of a conversation that has written Profile.Begin. last is the conversation's last prompt,
// or nil.
func NewWriter(p *Profile, last *renderer.Rendered) *Writer {
	out := &Writer{vocabulary: p.Vocabulary, last: last}
	if last != nil {
		out.IDs = make([]int32, 0, len(p.Begin)+len(last.IDs)+usualTurn)
		out.pieces = make([]renderer.Piece, 0, len(last.Pieces)+usualPieces)
	}
	out.IDs = append(out.IDs, p.Begin...)
	return out
}

// A turn usually adds at most this many ids and pieces to a prompt.
const usualTurn, usualPieces = 2048, 8

// Token ends the piece and adds a token by its name.
func (c *Writer) Token(name string) *Writer {
	c.Cut()
	c.IDs = append(c.IDs, c.vocabulary.ID(name))
	return c
}

// Tag adds a tag of the format, which is a token in some vocabularies of the family and text in the others.
func (c *Writer) Tag(name string) *Writer {
	if id, ok := c.vocabulary.Tokens.Special(name); ok {
		return c.Put(id)
	}
	return c.Text(name)
}

// Head begins a piece with the end of the header of a message. The content that follows is tokenised together with
// it. A token that covers parts of both belongs to the header.
func (c *Writer) Head(text string) *Writer {
	c.Cut()
	c.head = len(text)
	return c.Text(text)
}

// Text adds text to the piece. Names of special tokens in it are text.
func (c *Writer) Text(text string) *Writer {
	c.run = append(c.run, text...)
	return c
}

// Cut ends the piece: later text is tokenised apart.
func (c *Writer) Cut() *Writer {
	if len(c.run) == 0 {
		return c
	}
	begin := len(c.IDs)
	if c.last == nil {
		c.IDs = c.vocabulary.appendPiece(c.IDs, c.run)
	} else {
		c.cutKnown()
	}
	if c.texts != nil {
		*c.texts = append(*c.texts, writtenText{string(c.run), begin, len(c.IDs)})
	}
	if c.head > 0 {
		c.Output, c.end, c.head = begin+c.vocabulary.covering(c.IDs[begin:], c.head), 0, 0
	}
	c.run = c.run[:0]
	return c
}

// covering returns how many of the first ids have a text of at least size bytes.
func (v *Vocabulary) covering(ids []int32, size int) int {
	return sort.Search(len(ids), func(n int) bool {
		text, err := v.Tokens.Decode(ids[:n])
		return err == nil && len(text) >= size
	})
}

// cutKnown ends a piece that the last prompt may have.
func (c *Writer) cutKnown() {
	piece := renderer.Piece{Text: sha256.Sum256(c.run), Begin: len(c.IDs)}
	if known, ok := c.last.Find(piece.Text, len(c.pieces)); ok {
		c.IDs = append(c.IDs, known...)
	} else {
		c.IDs = c.vocabulary.appendPiece(c.IDs, c.run)
	}
	piece.End = len(c.IDs)
	c.pieces = append(c.pieces, piece)
}

// appendPiece appends the ids of a piece that any conversation may have had before.
func (v *Vocabulary) appendPiece(ids []int32, text []byte) []int32 {
	if known, ok := v.pieces.get(text); ok {
		return append(ids, known...)
	}
	piece := string(text)
	begin := len(ids)
	ids = v.Tokens.AppendEncode(ids, piece, v.match)
	v.pieces.put(piece, ids[begin:])
	return ids
}

// Body ends the header of a message.
func (c *Writer) Body() *Writer {
	c.Cut()
	c.Output, c.end = len(c.IDs), 0
	return c
}

// Tail ends the content of a message: later text separates messages.
func (c *Writer) Tail() *Writer {
	c.Cut()
	c.end = len(c.IDs)
	return c
}

// Put ends the piece and adds ids.
func (c *Writer) Put(ids ...int32) *Writer {
	c.Cut()
	c.IDs = append(c.IDs, ids...)
	return c
}

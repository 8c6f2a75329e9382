// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/general"
)

// Read reads a tokenizer.json. For the families that Parse knows, it returns the result of Parse; for other families,
// it returns a slower tokenizer that does the same as the reference. Like Parse, it refuses everything unknown.
func Read(tokenizerJSON []byte) (Tokenizer, error) {
	if t, err := parse(tokenizerJSON); err == nil {
		return t, nil
	}
	t, err := parseGeneral(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer.json: %w", err)
	}
	return t, nil
}

// General is a tokenizer of a family that Parse does not know. It implements Tokenizer and is safe for concurrent use.
type General struct{ tokens *general.Tokenizer }

var _ Tokenizer = (*General)(nil)

// Encode implements Tokenizer.
func (g *General) Encode(text string) []int32 {
	return g.AppendEncode(make([]int32, 0, len(text)/3+1), text, Literal)
}

// AppendEncode implements Tokenizer.
func (g *General) AppendEncode(dst []int32, text string, match Match) []int32 {
	if !utf8.ValidString(text) {
		text = lossy([]byte(text))
	}
	where := general.Nowhere
	if match == Specials {
		where = general.Everywhere
	}
	return g.tokens.AppendEncode(dst, text, where, match != Plain)
}

// AppendEncodeWhere implements Tokenizer.
func (g *General) AppendEncodeWhere(dst []int32, text string, special func(start, end int) bool) []int32 {
	if !utf8.ValidString(text) {
		return g.AppendEncode(dst, text, Literal) // Places in it are not places in the encoded text.
	}
	return g.tokens.AppendEncode(dst, text, special, true)
}

// Decode implements Tokenizer.
func (g *General) Decode(ids []int32) (string, error) { return g.tokens.Decode(ids) }

// Special implements Tokenizer.
func (g *General) Special(name string) (id int32, ok bool) { return g.tokens.Special(name) }

// IsSpecial reports whether an id belongs to a special added token.
func (g *General) IsSpecial(id int32) bool { return g.tokens.IsSpecial(id) }

// generalReader builds the configuration of a general tokenizer.
type generalReader struct {
	config general.Config
	// removes says that a normalizer may remove the start of a text, and normalizes that there is a normalizer.
	removes, normalizes bool
	// first is the index of a Metaspace that writes its prefix at the start of a text only, or -1.
	first int
	// byteLevels and metaspaces count pre-tokenizers, which may occur once.
	byteLevels, metaspaces int
}

func parseGeneral(data []byte) (*General, error) {
	if !utf8.Valid(data) {
		return nil, problem("the file is not UTF-8")
	}
	c := &cursor{data: data}
	file, err := fields(c, "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
		"post_processor", "decoder", "model")
	if err != nil {
		return nil, err
	}
	if c.next() != 0 || c.at < len(data) {
		return nil, c.unexpected("the end of the file")
	}
	g := &generalReader{first: -1}
	for _, step := range []struct {
		field string
		read  func(value []byte) error
	}{
		{"version", only(`"1.0"`)},
		{"truncation", only(`null`)},
		{"padding", only(`null`)},
		{"model", g.readModel},
		{"normalizer", g.readNormalizers},
		{"pre_tokenizer", func(value []byte) error { return nested(value, "pretokenizers", 0, g.readPreTokenizer) }},
		{"post_processor", readPostProcessor},
		{"decoder", g.readDecoders},
		{"added_tokens", g.readAdded},
	} {
		if err := step.read(file[step.field]); err != nil {
			return nil, within(step.field, err)
		}
	}
	if err := g.checkFirst(); err != nil {
		return nil, err
	}
	return &General{tokens: general.New(g.config)}, nil
}

// readNormalizers reads how text is rewritten before it is split.
func (g *generalReader) readNormalizers(value []byte) error {
	if err := nested(value, "normalizers", 0, g.readNormalizer); err != nil {
		return err
	}
	return asProblem(general.CheckGrowth(g.config.Normalizers))
}

// asProblem returns an error as a problem of the file.
func asProblem(err error) error {
	if err == nil {
		return nil
	}
	return problem("%v", err)
}

// nested reads the steps of a part of the file and of the Sequences in it.
func nested(value []byte, list string, depth int, read func(kind string, step []byte) error) error {
	const deepest = 8
	if depth > deepest {
		return problem("Sequences are nested in more than %d levels", deepest)
	}
	return eachStep(value, list, func(name string, step []byte) error {
		if name == "Sequence" {
			return nested(step, list, depth+1, read)
		}
		return read(name, step)
	})
}

// other are the types of models of the reference that are not supported.
var other = map[string]string{"Unigram": "", "WordPiece": "", "WordLevel": ""}

func (g *generalReader) readModel(value []byte) error {
	if isNull(value) {
		return problem("the field is missing")
	}
	name, err := kind(value)
	if err != nil {
		return err
	}
	if name != "BPE" {
		if _, known := other[name]; known {
			return within("type", problem("%s is not supported, only BPE is: choose a model whose tokenizer.json has a model "+
				"of type BPE", name))
		}
		return within("type", problem("%q is not known; known is BPE", name))
	}
	model, err := fields(&cursor{data: value}, "type", "dropout", "unk_token", "continuing_subword_prefix",
		"end_of_word_suffix",
		"fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges")
	if err != nil {
		return err
	}
	for field, check := range settled {
		if err := check(model[field]); err != nil {
			return within(field, err)
		}
	}
	m := &g.config.Model
	m.FuseUnknown, m.ByteFallback = string(model["fuse_unk"]) == "true", string(model["byte_fallback"]) == "true"
	m.WholeWins = string(model["ignore_merges"]) == "true"
	if unknown := model["unk_token"]; !isNull(unknown) {
		if err := decode(unknown, &m.Unknown); err != nil {
			return within("unk_token", err)
		}
	}
	for _, field := range []string{"vocab", "merges"} {
		if model[field] == nil {
			return within(field, problem("the field is missing"))
		}
	}
	if err := g.readVocab(model["vocab"]); err != nil {
		return within("vocab", err)
	}
	return within("merges", g.readMerges(model["merges"]))
}

func (g *generalReader) readVocab(value []byte) error {
	c := &cursor{data: value}
	vocabulary := make(map[string]int32, bytes.Count(value, []byte{':'}))
	tokens := make(map[int32]string, len(vocabulary))
	err := c.object(func(key []byte) error {
		token := string(key)
		id, err := c.integer()
		_, twice := vocabulary[token]
		other, taken := tokens[id]
		switch {
		case err != nil:
		case twice:
			err = problem("the token occurs twice")
		case taken:
			err = problem("id %d is also the id of %q", id, other)
		case id > maxID:
			err = problem("id %d is beyond %d, the highest that is supported", id, maxID)
		}
		vocabulary[token], tokens[id] = id, token
		return within("["+strconv.Quote(token)+"]", err)
	})
	g.config.Model.Vocabulary = vocabulary
	if unknown := g.config.Model.Unknown; err == nil && unknown != nil {
		if _, ok := vocabulary[*unknown]; !ok {
			return problem("the unk_token %q is missing", *unknown)
		}
	}
	return err
}

// readMerges reads pairs. A pair is a list of two tokens, or a string of two tokens with a space between them.
func (g *generalReader) readMerges(value []byte) error {
	c := &cursor{data: value}
	return c.array(func(int) error {
		read := spacedPair
		if c.next() == '[' {
			read = listedPair
		}
		pair, err := read(c)
		if err != nil {
			return err
		}
		return g.join(pair)
	})
}

// listedPair reads a list of two tokens.
func listedPair(c *cursor) (pair [2]string, err error) {
	n := 0
	err = c.array(func(i int) error {
		token, err := c.str()
		if n++; i < len(pair) {
			pair[i] = string(token)
		}
		return err
	})
	if err == nil && n != len(pair) {
		err = problem("%d tokens, want 2", n)
	}
	return pair, err
}

// spacedPair reads a string of two tokens.
func spacedPair(c *cursor) (pair [2]string, err error) {
	text, err := c.str()
	if err != nil {
		return pair, err
	}
	first, second, ok := bytes.Cut(text, []byte(" "))
	if !ok || bytes.IndexByte(second, ' ') >= 0 {
		return pair, problem("%q is not two tokens with a space between", text)
	}
	return [2]string{string(first), string(second)}, nil
}

// join adds a pair of tokens that are merged.
func (g *generalReader) join(pair [2]string) error {
	var ids [3]int32
	for i, token := range []string{pair[0], pair[1], pair[0] + pair[1]} {
		id, ok := g.config.Model.Vocabulary[token]
		if !ok {
			return problem("the vocabulary has no %q, of the merge of %q and %q", token, pair[0], pair[1])
		}
		ids[i] = id
	}
	g.config.Model.Merges = append(g.config.Model.Merges, general.Merge{First: ids[0], Second: ids[1], Into: ids[2]})
	return nil
}

// readAdded reads the tokens that are found before text is split. The reference itself numbers tokens that are not in
// the vocabulary.
func (g *generalReader) readAdded(value []byte) error {
	tokens, err := readAddedTokens(value)
	if err != nil {
		return err
	}
	next := int32(len(g.config.Model.Vocabulary))
	found := map[bool][]added{}
	seen := map[string]bool{}
	for i, token := range tokens {
		content := token.Content
		if token.Normalized {
			for _, n := range g.config.Normalizers {
				content = n.Apply(content)
			}
		}
		id, known := g.config.Model.Vocabulary[token.Content]
		if !known {
			id = next
			next++
		}
		key := strconv.FormatBool(token.Normalized) + content
		switch {
		case token.Content == "":
			err = within("content", problem("the token is empty"))
		case content == "":
			err = within("content", problem("%q is nothing after normalization: set normalized to false", token.Content))
		case seen[key]:
			err = within("content", problem("%q occurs twice", token.Content))
		case id != token.ID && known:
			err = within("id", problem("%q has id %d, and %d in the vocabulary", token.Content, token.ID, id))
		case id != token.ID:
			err = within("id", problem("%q has id %d, but %d is the next that is free", token.Content, token.ID, id))
		}
		if err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
		seen[key] = true
		found[token.Normalized] = append(found[token.Normalized], added{id: id, content: content, special: token.Special})
		g.config.Added = append(g.config.Added, general.Added{ID: id, Content: token.Content, Text: content,
			Special:    token.Special,
			SingleWord: token.SingleWord, LStrip: token.LStrip, RStrip: token.RStrip})
	}
	g.config.FindRaw, g.config.FindNormalized = finder(found[false]), finder(found[true])
	return nil
}

// finder returns a function that finds tokens, or nil if there are none.
func finder(tokens []added) general.Finder {
	if len(tokens) == 0 {
		return nil
	}
	m := newMatcher(tokens)
	return func(text string, from int) (general.Found, bool) {
		found, ok := m.find(text, from)
		return general.Found{Start: found.start, End: found.end, ID: found.id, Special: found.special}, ok
	}
}

// checkFirst refuses a Metaspace that writes its prefix only at the start of a text, if it would need to know which
// characters of the original text are left there.
func (g *generalReader) checkFirst() error {
	switch {
	case g.first < 0:
		return nil
	case g.first > 0:
		return within("pre_tokenizer",
			problem(`Metaspace with prepend_scheme "first" is supported as the first step only: move it there, or choose "always" or "never"`))
	case g.removes:
		return within("normalizer",
			problem(`Metaspace has prepend_scheme "first", which is not supported with a normalizer that may remove the start of a text`))
	case g.normalizes && g.config.FindNormalized != nil:
		return within("added_tokens",
			problem(`Metaspace has prepend_scheme "first", which is not supported with a normalizer and added tokens that have normalized set`))
	}
	return nil
}

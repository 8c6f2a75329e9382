// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/general"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/regex"
)

// patternField is a pattern in the form of the file.
type patternField struct{ Regex, String *string }

func (p patternField) read() (general.Pattern, error) {
	switch {
	case p.String != nil && p.Regex == nil:
		return general.Literal(*p.String), nil
	case p.Regex == nil || p.String != nil:
		return general.Pattern{}, within("pattern", problem("it is neither a Regex nor a String"))
	}
	pattern, err := general.Regex(*p.Regex)
	var e *regex.Error
	if errors.As(err, &e) {
		return pattern, within("pattern.Regex", problem("%v", e))
	}
	return pattern, err
}

// decodeStep reads a step into a struct. It refuses a step that lacks a required field.
func decodeStep(value []byte, target any, required ...string) error {
	if err := decode(value, target); err != nil {
		return err
	}
	var present map[string]json.RawMessage
	if err := json.Unmarshal(value, &present); err != nil {
		return problem("%v in %s", err, short(value))
	}
	for _, field := range required {
		if _, ok := present[field]; !ok {
			return within(field, problem("the field is missing"))
		}
	}
	return nil
}

// bare reads a step without fields.
func bare(value []byte) error {
	var step struct{ Type string }
	return decode(value, &step)
}

// single returns the only character of a text.
func single(text string) (rune, error) {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 || size < len(text) {
		return 0, problem("%q is not one character", text)
	}
	return r, nil
}

const mostPrefix = 64 // is the largest size of Prepend's text, in bytes.

func (g *generalReader) readNormalizer(name string, value []byte) error {
	n, err := g.normalizerOf(name, value)
	if err != nil {
		return err
	}
	g.config.Normalizers = append(g.config.Normalizers, n)
	g.removes = g.removes || n.Removes()
	g.normalizes = true
	return nil
}

func (g *generalReader) normalizerOf(name string, value []byte) (n general.Normalizer, err error) {
	var step struct {
		Type       string
		Prepend    string
		Pattern    patternField
		Content    string
		StripLeft  bool `json:"strip_left"`
		StripRight bool `json:"strip_right"`
	}
	switch name {
	case "NFC", "NFD", "NFKC", "NFKD":
		n, _ = general.Form(name)
		return n, bare(value)
	case "Lowercase":
		return general.Lowercase(), bare(value)
	case "StripAccents":
		return general.StripAccents(), bare(value)
	case "ByteLevel":
		return general.BytesAsText(), bare(value)
	case "Prepend":
		if err := decodeStep(value, &step, "prepend"); err != nil {
			return n, err
		}
		if len(step.Prepend) > mostPrefix {
			return n, within("prepend", problem("more than %d bytes are not supported", mostPrefix))
		}
		return general.Prepend(step.Prepend), nil
	case "Strip":
		err = decodeStep(value, &step, "strip_left", "strip_right")
		return general.Strip(step.StripLeft, step.StripRight), err
	case "Replace":
		if err := decodeStep(value, &step, "pattern", "content"); err != nil {
			return n, err
		}
		pattern, err := step.Pattern.read()
		return general.Replace(pattern, step.Content), err
	}
	return n, problem("normalizer %s is not supported; supported are Sequence, NFC, NFD, NFKC, NFKD, Lowercase, "+
		"StripAccents, ByteLevel, Prepend, "+
		"Strip and Replace", short(value))
}

func (g *generalReader) readPreTokenizer(name string, value []byte) error {
	p, err := g.preTokenizerOf(name, value)
	g.config.PreTokenizers = append(g.config.PreTokenizers, p)
	if err == nil && len(g.config.PreTokenizers) > mostSteps {
		return problem("more than %d steps are not supported", mostSteps)
	}
	return err
}

const mostSteps = 32 // is the largest number of pre-tokenizers.

func (g *generalReader) preTokenizerOf(name string, value []byte) (p general.PreTokenizer, err error) {
	var step struct {
		Type       string
		Behavior   general.Behavior
		Individual bool `json:"individual_digits"`
		Delimiter  string
		Length     int
	}
	switch name {
	case "Split":
		return readSplitStep(value)
	case "ByteLevel":
		return g.readByteLevelStep(value)
	case "Metaspace":
		return g.readMetaspace(value)
	case "Whitespace":
		return general.Whitespace(), bare(value)
	case "WhitespaceSplit":
		return general.WhitespaceSplit(), bare(value)
	case "Digits":
		err = decodeStep(value, &step, "individual_digits")
		return general.Digits(step.Individual), err
	case "Punctuation":
		step.Behavior = general.Isolated
		if err = decodeStep(value, &step); err == nil && !step.Behavior.Known() {
			err = within("behavior", problem("%q is not known", step.Behavior))
		}
		return general.Punctuation(step.Behavior), err
	case "CharDelimiterSplit":
		if err := decodeStep(value, &step, "delimiter"); err != nil {
			return p, err
		}
		delimiter, err := single(step.Delimiter)
		return general.CharDelimiterSplit(delimiter), within("delimiter", err)
	case "FixedLength":
		if err = decodeStep(value, &step, "length"); err == nil && step.Length < 1 {
			err = within("length", problem("%d is less than 1", step.Length))
		}
		return general.FixedLength(step.Length), err
	}
	return p, problem("pre-tokenizer %s is not supported; supported are Sequence, Split, ByteLevel, Metaspace, "+
		"Whitespace, WhitespaceSplit, Digits, "+
		"Punctuation, CharDelimiterSplit and FixedLength", short(value))
}

func readSplitStep(value []byte) (p general.PreTokenizer, err error) {
	var step struct {
		Type     string
		Pattern  patternField
		Behavior general.Behavior
		Invert   bool
	}
	if err := decodeStep(value, &step, "pattern", "behavior", "invert"); err != nil {
		return p, err
	}
	if !step.Behavior.Known() {
		return p, within("behavior", problem("%q is not known", step.Behavior))
	}
	pattern, err := step.Pattern.read()
	return general.SplitBy(pattern, step.Behavior, step.Invert), err
}

func (g *generalReader) readByteLevelStep(value []byte) (p general.PreTokenizer, err error) {
	var step byteLevelStep
	if err := decodeStep(value, &step, "add_prefix_space", "trim_offsets"); err != nil {
		return p, err
	}
	if g.byteLevels++; g.byteLevels > 1 {
		return p, problem("ByteLevel occurs twice, so that bytes would be written as bytes again: leave one out")
	}
	if step.UseRegex != nil && !*step.UseRegex {
		return general.ByteLevel(step.AddPrefixSpace, nil), nil
	}
	pattern, err := general.Regex(gpt2Pattern)
	return general.ByteLevel(step.AddPrefixSpace, &pattern), err
}

// metaspaceStep is a pre-tokenizer that writes another character for spaces, or a decoder that reads it.
type metaspaceStep struct {
	Type           string
	Replacement    string
	PrependScheme  *general.Prefix `json:"prepend_scheme"`
	AddPrefixSpace *bool           `json:"add_prefix_space"` // The older form of prepend_scheme.
	Split          *bool
	StrRep         string `json:"str_rep"` // It repeats the replacement, and is not read.
}

func (m *metaspaceStep) read(value []byte) (replacement rune, prefix general.Prefix, err error) {
	if err := decodeStep(value, m, "replacement"); err != nil {
		return 0, "", err
	}
	if replacement, err = single(m.Replacement); err != nil {
		return 0, "", within("replacement", err)
	}
	prefix = general.PrefixAlways
	if m.PrependScheme != nil {
		prefix = *m.PrependScheme
	}
	switch {
	case prefix != general.PrefixAlways && prefix != general.PrefixFirst && prefix != general.PrefixNever:
		return 0, "", within("prepend_scheme", problem("%q is not known", prefix))
	case m.AddPrefixSpace != nil && !*m.AddPrefixSpace && prefix != general.PrefixNever:
		return 0, "", within("add_prefix_space", problem(`false contradicts prepend_scheme %q: set that to "never"`, prefix))
	}
	return replacement, prefix, nil
}

func (g *generalReader) readMetaspace(value []byte) (p general.PreTokenizer, err error) {
	var step metaspaceStep
	replacement, prefix, err := step.read(value)
	if err != nil {
		return p, err
	}
	if g.metaspaces++; g.metaspaces > 1 {
		return p, problem("Metaspace occurs twice: leave one out")
	}
	if prefix == general.PrefixFirst {
		g.first = len(g.config.PreTokenizers)
	}
	return general.Metaspace(replacement, prefix, step.Split == nil || *step.Split), nil
}

func (g *generalReader) readDecoders(value []byte) error {
	if isNull(value) {
		return problem("there is no decoder: the reference would write a space between any two tokens; " +
			`set the decoder that fits the pre_tokenizer, such as {"type": "ByteLevel", …} or {"type": "Metaspace", …}`)
	}
	err := nested(value, "decoders", 0, func(name string, step []byte) error {
		d, err := decoderOf(name, step)
		g.config.Decoders = append(g.config.Decoders, d)
		return err
	})
	if err != nil {
		return err
	}
	return asProblem(general.CheckGrowth(g.config.Decoders))
}

func decoderOf(name string, value []byte) (d general.Decoder, err error) {
	var step struct {
		Type        string
		Pattern     patternField
		Content     string
		Start, Stop uint32
	}
	switch name {
	case "ByteLevel":
		var known byteLevelStep
		return general.BytesOf(lossy), decode(value, &known)
	case "Metaspace":
		var known metaspaceStep
		replacement, prefix, err := known.read(value)
		return general.SpacesOf(replacement, prefix), err
	case "ByteFallback":
		return general.ByteFallback(), bare(value)
	case "Fuse":
		return general.Fuse(), bare(value)
	case "Replace":
		if err := decodeStep(value, &step, "pattern", "content"); err != nil {
			return d, err
		}
		pattern, err := step.Pattern.read()
		return general.ReplaceIn(pattern, step.Content), err
	case "Strip":
		if err := decodeStep(value, &step, "content", "start", "stop"); err != nil {
			return d, err
		}
		content, err := single(step.Content)
		return general.StripOf(content, int(step.Start), int(step.Stop)), within("content", err)
	}
	return d, problem("decoder %s is not supported; supported are Sequence, ByteLevel, Metaspace, ByteFallback, Fuse, "+
		"Replace and Strip", short(value))
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/json"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/nfc"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

// steps returns the steps of a part of the file: the list of a Sequence, by the name of its field, or the part itself.
// A part that is missing has no steps.
func steps(value []byte, list string) ([]json.RawMessage, error) {
	if isNull(value) {
		return nil, nil
	}
	name, err := kind(value)
	if err != nil {
		return nil, err
	}
	if name != "Sequence" {
		return []json.RawMessage{value}, nil
	}
	found, err := fields(&cursor{data: value}, "type", list)
	if err != nil {
		return nil, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(found[list], &parts); err != nil {
		return nil, within(list, problem("%s is not a list", short(found[list])))
	}
	return parts, nil
}

// eachStep reads the steps of a part of the file. Its errors name the step.
func eachStep(value []byte, list string, read func(kind string, step []byte) error) error {
	parts, err := steps(value, list)
	if err != nil {
		return err
	}
	for i, part := range parts {
		name, err := kind(part)
		if err == nil {
			err = read(name, part)
		}
		if err != nil && len(parts) > 1 {
			err = within(list+"["+strconv.Itoa(i)+"]", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *BPE) readNormalizer(value []byte) error {
	return eachStep(value, "normalizers", func(kind string, step []byte) error {
		if kind != "NFC" || t.normalize != nil {
			return problem("normalizer %s is not known; known is NFC", short(step))
		}
		t.normalize = nfc.String
		return nil
	})
}

// splitStep is a pre-tokenizer that cuts at the matches of a pattern.
type splitStep struct {
	Type     string
	Pattern  struct{ Regex *string }
	Behavior string
	Invert   bool
}

// byteLevelStep is a pre-tokenizer that writes bytes in the alphabet, a decoder that reads them, or a post-processor
// that only changes offsets, which ids do not have.
type byteLevelStep struct {
	Type           string
	AddPrefixSpace bool  `json:"add_prefix_space"`
	TrimOffsets    bool  `json:"trim_offsets"`
	UseRegex       *bool `json:"use_regex"`
}

// readPreTokenizer accepts splits by known patterns, followed by ByteLevel.
func (t *BPE) readPreTokenizer(value []byte) error {
	var patterns []string
	last := ""
	err := eachStep(value, "pretokenizers", func(kind string, step []byte) error {
		if last == "ByteLevel" {
			return problem("pre-tokenizer %s comes after ByteLevel, which must be the last", short(step))
		}
		last = kind
		var pattern string
		var err error
		switch kind {
		case "Split":
			pattern, err = readSplit(step)
		case "ByteLevel":
			pattern, err = readByteLevel(step)
		default:
			return problem("pre-tokenizer %s is not known; known are Split and ByteLevel", short(step))
		}
		if pattern != "" {
			patterns = append(patterns, pattern)
		}
		return err
	})
	if err != nil {
		return err
	}
	if last != "ByteLevel" {
		return problem("ByteLevel is not its last step; only byte-level vocabularies are known")
	}
	t.scan, err = split.ByPatterns(patterns)
	if err != nil {
		return problem("%v", err)
	}
	return nil
}

func readSplit(value []byte) (pattern string, err error) {
	var step splitStep
	if err := decode(value, &step); err != nil {
		return "", err
	}
	switch {
	case step.Pattern.Regex == nil || *step.Pattern.Regex == "":
		return "", within("pattern", problem("there is no Regex; other kinds of patterns are not known"))
	case step.Behavior != "Isolated":
		return "", within("behavior", problem("%q is not known; known is Isolated", step.Behavior))
	case step.Invert:
		return "", within("invert", problem("true is not known; known is false"))
	}
	return *step.Pattern.Regex, nil
}

// gpt2Pattern is the pattern that ByteLevel splits by, unless use_regex is false.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func readByteLevel(value []byte) (pattern string, err error) {
	var step byteLevelStep
	if err := decode(value, &step); err != nil {
		return "", err
	}
	if step.AddPrefixSpace {
		return "", within("add_prefix_space", problem("true is not known; known is false"))
	}
	if step.UseRegex == nil || *step.UseRegex {
		return gpt2Pattern, nil
	}
	return "", nil
}

// readPostProcessor accepts post-processors that only add special tokens around a text on request. Special tokens are
// never requested here: renderers write them.
func readPostProcessor(value []byte) error {
	return eachStep(value, "processors", func(kind string, step []byte) error {
		if kind != "ByteLevel" && kind != "TemplateProcessing" {
			return problem("post-processor %s is not known; known are ByteLevel and TemplateProcessing", short(step))
		}
		return nil
	})
}

func readDecoder(value []byte) error {
	if isNull(value) {
		return problem("there is no decoder; known is ByteLevel")
	}
	return eachStep(value, "decoders", func(kind string, step []byte) error {
		if kind != "ByteLevel" {
			return problem("decoder %s is not known; known is ByteLevel", short(step))
		}
		var known byteLevelStep
		return decode(step, &known)
	})
}

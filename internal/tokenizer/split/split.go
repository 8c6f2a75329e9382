// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package split cuts text into the pieces within which tokens are merged, as the regular expressions of tokenizer files
// define them. Go's regexp compiles none of them, since they look ahead, and other engines match some of them
// differently without an error. So each known pattern has a scanner written by hand, and others are refused.
package split

import (
	"fmt"
	"slices"
	"strings"
)

// Scanner returns the length in bytes of the first piece of a text that is not empty. It depends on the text that
// follows, never on the text before.
type Scanner func(text string) int

// UnknownPatternError reports that there is no scanner for the patterns of a tokenizer.
type UnknownPatternError struct {
	// Patterns are the patterns in the order of their application.
	Patterns []string
}

// Error implements error.
func (e *UnknownPatternError) Error() string {
	return fmt.Sprintf("no scanner is known for the split pattern %q: internal/tokenizer/split needs one, with vectors "+
		"of the reference", e.Patterns)
}

// The patterns consist of these parts.
const (
	contraction = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	newlines    = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	capital     = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	small       = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	before      = `[^\r\n\p{L}\p{N}]?`
	notHan      = `&&[^\p{Han}]]`
)

// known has the scanner of each pattern, by its name. Patterns are compared as text: an equivalent pattern with another
// spelling is unknown.
var known = map[string]struct {
	patterns []string
	scanner  Scanner
}{
	"gpt2": {
		patterns: []string{`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`},
		scanner:  gpt2,
	},
	"qwen2": {
		patterns: []string{contraction + `|` + before + `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + newlines},
		scanner:  words{letters: letter, digits: 1}.piece,
	},
	"qwen3.5": {
		patterns: []string{contraction + `|` + before + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + newlines},
		scanner:  words{letters: letter | mark, digits: 1}.piece,
	},
	"llama3": {
		patterns: []string{contraction + `|` + before + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + newlines},
		scanner:  words{letters: letter, digits: 3}.piece,
	},
	"o200k": {
		patterns: []string{before + capital + `*` + small + `+` + contraction + `?|` +
			before + capital + `+` + small + `*` + contraction + `?|` +
			`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + newlines},
		scanner: cased{digits: 3, contractions: true, slash: true}.piece,
	},
	"nemotron3": {
		patterns: []string{before + capital + `*` + small + `+|` + before + capital + `+` + small + `*|` +
			`\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + newlines},
		scanner: cased{digits: 1, slash: true}.piece,
	},
	"kimi_k2": {
		patterns: []string{`[\p{Han}]+|` +
			before + `[` + capital[1:len(capital)-1] + notHan + `*[` + small[1:len(small)-1] + notHan + `+` + contraction +
			`?|` +
			before + `[` + capital[1:len(capital)-1] + notHan + `+[` + small[1:len(small)-1] + notHan + `*` + contraction +
			`?|` +
			`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + newlines},
		scanner: cased{digits: 3, contractions: true, apart: han}.piece,
	},
	"deepseek_v3": {
		patterns: []string{
			`\p{N}{1,3}`,
			"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
			"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| " +
				"?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
		},
		scanner: deepseek,
	},
	"whole": {patterns: nil, scanner: func(text string) int { return len(text) }},
}

// ByPatterns returns the scanner of patterns that are applied one after the other, each to the pieces of the previous
// pattern. Without patterns, the whole text is one piece. The error is an *UnknownPatternError.
func ByPatterns(patterns []string) (Scanner, error) {
	for _, k := range known {
		if slices.Equal(k.patterns, patterns) {
			return k.scanner, nil
		}
	}
	return nil, &UnknownPatternError{Patterns: slices.Clone(patterns)}
}

// ByName returns the scanner and the patterns of a name, for file formats that do not contain patterns.
func ByName(name string) (Scanner, []string, error) {
	k, ok := known[name]
	if !ok {
		return nil, nil, fmt.Errorf("no split is named %q, only %s", name, strings.Join(Names(), ", "))
	}
	return k.scanner, slices.Clone(k.patterns), nil
}

// Names returns the names of all splits, sorted.
func Names() []string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

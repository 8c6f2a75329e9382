// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"strings"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/nfc"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/regex"
)

// Normalizer rewrites text before it is split.
type Normalizer struct {
	apply func(string) string
	// growth is the factor by which a text may grow.
	growth float64
	// removes means that the start of a text may vanish.
	removes bool
}

func (n Normalizer) factor() float64 { return n.growth }

// Apply normalises text, which must be valid UTF-8.
func (n Normalizer) Apply(text string) string { return n.apply(text) }

// Removes reports whether a normalizer may remove the start of a text.
func (n Normalizer) Removes() bool { return n.removes }

// forms are the normalization forms of Unicode. A character has at most four parts, or eleven times its size by
// compatibility.
var forms = map[string]Normalizer{
	"NFC": {apply: nfc.String, growth: 3}, "NFD": {apply: nfc.Decomposed, growth: 4},
	"NFKC": {apply: nfc.Compatible, growth: 11}, "NFKD": {apply: nfc.CompatibleDecomposed, growth: 11},
}

// Form returns a normalization form of Unicode by its name.
func Form(name string) (Normalizer, bool) {
	n, ok := forms[name]
	return n, ok
}

// Prepend writes a prefix before text that is not empty.
func Prepend(prefix string) Normalizer {
	return Normalizer{growth: 1 + float64(len(prefix)), apply: func(text string) string {
		if text == "" {
			return text
		}
		return prefix + text
	}}
}

// Replace writes content for each match of a pattern.
func Replace(p Pattern, content string) Normalizer {
	return Normalizer{growth: p.growth(content), removes: content == "",
		apply: func(text string) string { return p.replace(text, content) }}
}

// Lowercase writes each character in lower case, regardless of its neighbours.
func Lowercase() Normalizer {
	return Normalizer{growth: 1.5, apply: func(text string) string {
		index := lower()
		var out strings.Builder
		for _, r := range text {
			if small, ok := index[r]; ok {
				out.WriteString(small)
			} else {
				out.WriteRune(r)
			}
		}
		return out.String()
	}}
}

// Strip removes white space at the ends of text.
func Strip(left, right bool) Normalizer {
	return Normalizer{growth: 1, removes: left, apply: func(text string) string {
		if left {
			text = strings.TrimLeftFunc(text, isSpace)
		}
		if right {
			text = strings.TrimRightFunc(text, isSpace)
		}
		return text
	}}
}

// StripAccents removes combining marks.
func StripAccents() Normalizer {
	return Normalizer{growth: 1, removes: true, apply: func(text string) string {
		return strings.Map(func(r rune) rune {
			if has(r, traitAccent) {
				return -1
			}
			return r
		}, text)
	}}
}

// BytesAsText writes bytes in the alphabet of byte-level vocabularies.
func BytesAsText() Normalizer { return Normalizer{growth: 2, apply: toAlphabet} }

// Pattern is a regular expression or a string.
type Pattern struct {
	text  string
	regex *regex.Regexp
}

// Literal is the pattern of a string.
func Literal(text string) Pattern { return Pattern{text: text} }

// Regex returns the pattern of a regular expression. Its error is a *regex.Error.
func Regex(pattern string) (Pattern, error) {
	r, err := regex.Compile(pattern)
	return Pattern{regex: r}, err
}

// matches calls found with each match.
func (p Pattern) matches(text string, found func(start, end int)) {
	switch {
	case p.regex != nil:
		p.regex.Matches(text, found)
	case p.text == "":
		for i := range text {
			found(i, i)
		}
		found(len(text), len(text))
	default:
		for done := 0; ; {
			at := strings.Index(text[done:], p.text)
			if at < 0 {
				return
			}
			found(done+at, done+at+len(p.text))
			done += at + len(p.text)
		}
	}
}

func (p Pattern) replace(text, content string) string {
	if p.regex == nil && p.text != "" {
		return strings.ReplaceAll(text, p.text, content)
	}
	var out strings.Builder
	done := 0
	p.matches(text, func(start, end int) {
		out.WriteString(text[done:start])
		out.WriteString(content)
		done = end
	})
	if done == 0 && out.Len() == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// growth returns the factor by which a text may grow.
func (p Pattern) growth(content string) float64 {
	switch {
	case p.regex != nil || p.text == "":
		return 1 + float64(len(content)) // A match may be empty, beside each character.
	default:
		return max(1, float64(len(content))/float64(len(p.text)))
	}
}

// alphabet has the characters with which byte-level vocabularies write bytes.
var alphabet = func() (characters [256]string) {
	next := rune(0x100)
	for b := range characters {
		r := rune(b)
		if r < '!' || r > '~' && r < 0xa1 || r == 0xad {
			r = next
			next++
		}
		characters[b] = string(r)
	}
	return characters
}()

// toAlphabet writes the bytes of text in the alphabet.
func toAlphabet(text string) string {
	var out strings.Builder
	out.Grow(len(text) + len(text)/4)
	for i := range len(text) {
		out.WriteString(alphabet[text[i]])
	}
	return out.String()
}

// letters has the bytes that the characters of the alphabet stand for.
var letters = func() map[rune]byte {
	index := map[rune]byte{}
	for b, character := range alphabet {
		r, _ := utf8.DecodeRuneInString(character)
		index[r] = byte(b)
	}
	return index
}()

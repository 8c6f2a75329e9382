// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package nfc

import (
	"slices"
	"strings"
	"testing"
)

// TestString composes cases that break easily. The tests in test/models ask the reference about every character.
func TestString(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"nothing":                                   {"", ""},
		"composed text stays":                       {"é a 日本 가", "é a 日本 가"},
		"a letter and its mark":                     {"xe\u0301x", "xéx"},
		"a mark without a letter stays":             {"\u0301", "\u0301"},
		"two marks in the wrong order":              {"a\u0301\u0323", "ạ\u0301"},
		"marks of one class keep their order":       {"q\u0301\u0300", "q\u0301\u0300"},
		"a mark is blocked by another of its class": {"a\u0315\u0300\u05ae\u0300\u0315x", "à\u05ae\u0300\u0315\u0315x"},
		"a character that is another":               {"\u212b \u2126", "Å Ω"},
		"one that is never composed":                {"\u0958", "\u0915\u093c"},
		"a mark that is two":                        {"a\u0344", "ä\u0301"},
		"parts of a syllable":                       {"\u1112\u1161\u11ab", "한"},
		"a syllable and its last part":              {"하\u11ab", "한"},
		"a last part without a syllable":            {"x\u11ab", "x\u11ab"},
		"a vowel without a first part":              {"x\u1161", "x\u1161"},
		"the first of the last parts is ignored":    {"가\u11a7", "가\u11a7"},
		"a pair of the supplement":                  {"\U00011131\U00011127", "\U0001112e"},
		"a pair that came later stays":              {"\U00011935\U00011930", "\U00011935\U00011930"},
		"marks that came later are letters":         {"a\u1ac1\u0323", "a\u1ac1\u0323"},
		"and end the row of those before":           {"a\u0301\u1ac1\u0323", "á\u1ac1\u0323"},
		"many marks": {
			"a" + strings.Repeat("\u0301", 5000) + strings.Repeat("\u0323", 5000),
			"ạ" + strings.Repeat("\u0323", 4999) + strings.Repeat("\u0301", 5000),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := String(tc.text); got != tc.want {
				t.Errorf("%+q, want %+q", got, tc.want)
			}
			if got := String(tc.want); got != tc.want {
				t.Errorf("the composed text becomes %+q", got)
			}
		})
	}
}

func TestComposedTextIsNotCopied(t *testing.T) {
	text := strings.Repeat("plain text, größer, 日本語 한국어, ", 10)
	if n := testing.AllocsPerRun(10, func() { text = String(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzString checks that composed text stays the same if it is composed again, and that String gives the same text as
// composing without its shortcuts.
func FuzzString(f *testing.F) {
	f.Add("e\u0301\u0323가\u11ab")
	f.Add("\u0344\u0958\U00011131\U00011127")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		whole := String(text)
		if again := String(whole); again != whole {
			t.Errorf("%+q becomes %+q, and then %+q", text, whole, again)
		}
		if got := string(compose(decompose(nil, text))); got != whole {
			t.Errorf("%+q becomes %+q, and %+q where nothing is left out", text, whole, got)
		}
		if parts := decompose(nil, text); !slices.Equal(parts, decompose(nil, whole)) {
			t.Errorf("%+q and %+q have other parts", text, whole)
		}
	})
}

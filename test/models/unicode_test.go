// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"slices"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/nfc"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

// TestTablesAreTheReferences checks that the tables equal the reference's data of every code point today.
func TestTablesAreTheReferences(t *testing.T) {
	run(t, root+"/hack/models/unicode_tables.py", "--root", root, "--check")
}

func TestSplits(t *testing.T) {
	for _, name := range split.Names() {
		scan, patterns, err := split.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(patterns) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			wrong, compared := 0, 0
			ask(t, []string{"split", quoted(t, patterns)}, samples(t, nil, 1), func(q textQuestion, want struct{ Sizes []int }) {
				var got []int
				for text := q.Text; len(text) > 0; {
					n := scan(text)
					got = append(got, n)
					text = text[n:]
				}
				if compared++; slices.Equal(got, want.Sizes) {
					return
				}
				if wrong++; wrong <= 5 {
					t.Errorf("%.2000q (-want +got):\n%s", q.Text, cmp.Diff(want.Sizes, got))
				}
			})
			t.Logf("%d mismatches in %d comparisons", wrong, compared)
		})
	}
}

func TestNormalizationForms(t *testing.T) {
	forms := map[string]func(string) string{
		"nfc": nfc.String, "nfd": nfc.Decomposed, "nfkc": nfc.Compatible, "nfkd": nfc.CompatibleDecomposed,
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			wrong, compared := 0, 0
			ask(t, []string{name}, doubtful(t), func(q, want textQuestion) {
				compared++
				if got := form(q.Text); got != want.Text {
					if wrong++; wrong <= 5 {
						t.Errorf("%+q: %+q, want %+q", q.Text, got, want.Text)
					}
				}
			})
			t.Logf("%d mismatches in %d comparisons", wrong, compared)
		})
	}
}

// doubtful yields every character alone, every character between marks and letters that it may join, and random texts.
func doubtful(t testing.TB) func(yield func(textQuestion) bool) {
	return func(yield func(textQuestion) bool) {
		for r := rune(0); r <= unicode.MaxRune; r += 64 {
			if r >= 0x34000 && r < 0xe0000 || r >= 0xe0200 {
				continue // No character is assigned there.
			}
			var all, between []rune
			for c := r; c < r+64; c++ {
				if c < 0xd800 || c > 0xdfff {
					all = append(all, 'x', c)
					between = append(between, 'a', '\u0323', c, '\u0301', 'ᄀ', c, 'ᆨ', 'e', '\u0327', c, '\u0334')
				}
			}
			if len(all) > 0 && (!yield(textQuestion{string(all)}) || !yield(textQuestion{string(between)})) {
				return
			}
		}
		for q := range samples(t, nil, 1) {
			if !yield(q) {
				return
			}
		}
	}
}

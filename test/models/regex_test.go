// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/regex"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

type (
	regexQuestion struct {
		Pattern string `json:"pattern"`
		Text    string `json:"text"`
	}
	regexAnswer struct {
		Sizes   []int
		Matches []string
		Error   string
		GaveUp  bool `json:"gave_up"`
	}
)

// patterns are the patterns of well-known tokenizer files, and expressions whose meaning differs between engines.
func patterns(t testing.TB) []string {
	list := []string{
		// cl100k as tiktoken has it, and the patterns of several families.
		`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`,
		`(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		`[\p{L}\p{N}]+|[^\s\p{L}\p{N}]+|\s+`, `(?=(\d{3})+(?!\d))`, `\d{1,3}(?=(?:\d{3})*\b)`, `[0-9][0-9][0-9]`,
		`[一-龥぀-ゟ゠-ヿ]+`,
		` ?[^(\s|.,!?…。，、।۔،)]+`, `[\n\r]+`, `[^\n]+|[\n]+`, ` {2,}`, `(?<=\p{L})(?=\p{N})`,
		`\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})`, `[^\S\n]+`,
		`a++b`, `a{2}+`, `\p{N}{1,2}+`, `(?i:ss)`, `(?i)k`, `\h+`, `[[:alpha:]]+`, `[[:punct:]]+`, `[[:^space:]]+`, `\p{^L}+`,
		`\P{^L}+`, `[a-z&&[^aeiou]]+`,
		`\R`, `(?<=a|bc)x`, `(?<!^)b`, `\u0041`, `\x{41}+`, `^b`, `a$`, `.`, `(?m).`, `\Z`, `\z`, `\A.`, `\b`, `\B`,
		`(?>a|ab)c`, `{`, `a{`, `a{,3}`, `]`, `[]a]`, `(?#c)a`,
		`a**`, `a+*`, `a+?*`, ``, `x*`, `\d+`, `\w+`, `\W+`, `\s+`, `\S+`, `a(?i)b|c`, `(?i)a(?-i)b`, `a{2}?`, `a{2,}?`,
		`a??b`, `(?:a|b)?+c`, `[^a&&b]`, `[a-c-e]+`, `(?x) a b # c`,
		`(?i:[a-z])+`, `(?i:[^k])+`, `(?i:ǆ)`, `(?i:ς)`, `(?i:Ω)`, `(?i:İ)`, `(?i:ı)+`,
		`\p{Greek}+|\p{Cyrillic}+|\p{Han}+|\p{Common}+`, `\p{Emoji}+`, `\p{Alphabetic}+`,
		`(?<n>a)b|(c)`, `$`, `^`, `\N+`, `\O`, `(?:|a)b`, `a|`, `(?=a)`, `(?!a)`, `\.`, `\é`, `[\]\[]+`, `[\b]`, `[\d\-x]+`,
		`(?~a)`, `\X`, `\K`, `(a)\1`, `\G`, `[a`, `(a`, `a)`, `*`,
		`[[:foo:]]`, `\p{foo}`, `\p{Cn}+`, `\p{Co}`, `[\p{L}--[a]]`, `\x7`, `\x80`, `[z-a]`, `(?s).`, `(?P<n>a)`, `a{3,1}`,
		`\p{white space}+`, `\p{InCyrillic}`, `\pL`, `[\w-.]`,
	}
	for _, name := range split.Names() {
		_, all, err := split.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, all...)
	}
	return list
}

// madePattern makes a random pattern.
func madePattern(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "c", " ", "\\n", "é", "日", "1", ".", "\\s", "\\S", "\\w", "\\W", "\\d", "\\D", "\\h",
		"\\p{L}", "\\P{L}", "\\p{N}", "\\p{Lu}", "\\p{Ll}", "\\p{M}",
		"\\p{Han}", "\\p{Latin}", "[ab]", "[^ab]", "[a-c1-3]", "[^\\s\\p{L}\\p{N}]", "[\\p{L}&&[^a]]", "[[:digit:]b]",
		"[^\\r\\n]", "'", "\\R", "\\x{e9}", "[à-ÿ]", "^", "$", "\\b", "\\B", "\\A", "\\z"}
	repeats := []string{"*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{1,3}", "{2}", "{1,}", "{,2}", "{1,2}?"}
	var b strings.Builder
	for range 1 + r.IntN(4) {
		if r.IntN(6) == 0 {
			b.WriteByte('|')
		}
		atom := atoms[r.IntN(len(atoms))]
		if depth > 0 && r.IntN(3) == 0 {
			open := []string{"(?:", "(", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?m:"}[r.IntN(9)]
			atom = open + madePattern(r, depth-1) + ")"
		}
		b.WriteString(atom)
		if r.IntN(2) == 0 {
			b.WriteString(repeats[r.IntN(len(repeats))])
		}
	}
	return b.String()
}

// TestRegex compares matches with Oniguruma's, on known and made patterns. Patterns may be refused by name here, but a
// pattern that is accepted here must be accepted there, and match the same.
func TestRegex(t *testing.T) {
	t.Parallel()
	count, seed := number(t, "MODELS_TEXTS", 2000), number(t, "MODELS_SEED", 1)
	made := newTexts(seed, []string{"aab", "abc", "a1b", "ab ab", "AbC", "x\n\ny"})
	questions := func(yield func(regexQuestion) bool) {
		for _, pattern := range patterns(t) {
			for _, text := range append(tricky, "aaab", "abcabc", "axbcx", "a\nb\n", "a\r\nb", "ssSS ß", "kKK", "1234567", "") {
				if !yield(regexQuestion{pattern, text}) {
					return
				}
			}
			for range count / 50 {
				if !yield(regexQuestion{pattern, made.one()}) {
					return
				}
			}
		}
		for range count {
			pattern := madePattern(made.Rand, 2)
			for range 4 {
				if !yield(regexQuestion{pattern, made.one()}) {
					return
				}
			}
		}
	}
	wrong, compared, gaveUp, refused := 0, 0, 0, map[string]string{}
	compiled := map[string]*regex.Regexp{}
	ask(t, []string{"regex"}, questions, func(q regexQuestion, want regexAnswer) {
		compared++
		r, ok := compiled[q.Pattern]
		if !ok {
			var err error
			r, err = regex.Compile(q.Pattern)
			var known *regex.Error
			switch {
			case err != nil && !errors.As(err, &known):
				t.Fatalf("compiling %q: %v is not a *regex.Error", q.Pattern, err)
			case err != nil && want.Error == "":
				refused[q.Pattern] = known.Problem
			case err == nil && want.Error != "":
				wrong++
				t.Errorf("compiling %q: got no error, want one: %s", q.Pattern, want.Error)
			}
			compiled[q.Pattern] = r
		}
		if want.GaveUp {
			gaveUp++
		}
		if r == nil || want.Error != "" || want.GaveUp {
			return
		}
		sizes, matches := cutBy(r, q.Text)
		if diff := cmp.Diff(want, regexAnswer{Sizes: sizes, Matches: matches}); diff != "" {
			if wrong++; wrong <= 20 {
				t.Errorf("%q in %q (-want +got):\n%s", q.Pattern, q.Text, diff)
			}
		}
	})
	for _, pattern := range patterns(t) {
		if why, ok := refused[pattern]; ok {
			t.Logf("refused: %s: %s", pattern, why)
		}
	}
	t.Logf("%d mismatches in %d comparisons of %d patterns; %d patterns refused here alone; the reference gave "+
		"up %d times",
		wrong, compared, len(compiled), len(refused), gaveUp)
}

// cutBy returns the sizes of the pieces and the texts of the matches that are not empty.
func cutBy(r *regex.Regexp, text string) ([]int, []string) {
	sizes, matches, last := []int{}, []string{}, 0
	r.Matches(text, func(start, end int) {
		for _, n := range []int{start - last, end - start} {
			if n > 0 {
				sizes = append(sizes, n)
			}
		}
		if end > start {
			matches = append(matches, text[start:end])
		}
		last = end
	})
	if last < len(text) {
		sizes = append(sizes, len(text)-last)
	}
	return sizes, matches
}

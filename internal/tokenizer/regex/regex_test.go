// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package regex

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compiled(t testing.TB, pattern string) *Regexp {
	t.Helper()
	r, err := Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found returns the beginning and the end of each match in a text, which are equal for an empty match.
func found(r *Regexp, text string) [][2]int {
	all := [][2]int{}
	r.Matches(text, func(start, end int) { all = append(all, [2]int{start, end}) })
	return all
}

// TestMatches compares with the matches of Oniguruma. test/models compares many more.
func TestMatches(t *testing.T) {
	cases := map[string]struct {
		pattern, text string
		want          [][2]int
	}{
		"the first alternative wins":             {`a|ab`, "ab", [][2]int{{0, 1}}},
		"a possessive repetition keeps":          {`a++a|b`, "aab", [][2]int{{2, 3}}},
		"an atomic group keeps":                  {`(?>a|ab)c`, "abc", [][2]int{}},
		"a lazy repetition takes little":         {`a+?`, "aa", [][2]int{{0, 1}, {1, 2}}},
		"a plus after an interval repeats it":    {`a{2}+`, "aaaaa", [][2]int{{0, 4}}},
		"a question after a count is optional":   {`a{2}?`, "aaa", [][2]int{{0, 2}, {3, 3}}},
		"no empty match follows a match":         {`x*`, "axb", [][2]int{{0, 0}, {1, 2}, {3, 3}}},
		"white space before a word":              {`\s+(?!\S)|\s`, "a   b", [][2]int{{1, 3}, {3, 4}}},
		"look-behind of alternatives":            {`(?<=a|bc)x`, "axbcx", [][2]int{{1, 2}, {4, 5}}},
		"look-behind sees the last match":        {`(?<!a)b|a`, "ab", [][2]int{{0, 1}}},
		"the long s is an s without case":        {`(?i:'s)`, "'ſ", [][2]int{{0, 3}}},
		"the Kelvin sign is a k without case":    {`(?i)k`, "\u212a", [][2]int{{0, 3}}},
		"an option ends with its group":          {`a(?i)b|c`, "aBaCC", [][2]int{{0, 2}, {2, 4}}},
		"sets intersect":                         {`[a-z&&[^aeiou]]+`, "hello", [][2]int{{0, 1}, {2, 4}}},
		"a complement of an intersection":        {`[^a&&b]`, "ab", [][2]int{{0, 1}, {1, 2}}},
		"a newline of two characters is one":     {`\R`, "a\r\nb\n", [][2]int{{1, 3}, {4, 5}}},
		"lines begin after newlines, not at end": {`^`, "a\n", [][2]int{{0, 0}}},
		"a dot is no newline":                    {`.`, "\na", [][2]int{{1, 2}}},
		"with m it is":                           {`(?m:.)`, "\na", [][2]int{{0, 1}, {1, 2}}},
		"squares are words outside of brackets":  {`\w+`, "x²", [][2]int{{0, 3}}},
		"they are none in brackets":              {`[\w]+`, "x²", [][2]int{{0, 1}}},
		"letters of Unicode 16":                  {`\p{Lu}`, "\u1c89", [][2]int{{0, 3}}},
		"braces that are no interval":            {`a{,x}`, "a{,x}", [][2]int{{0, 5}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, found(compiled(t, tc.pattern), tc.text)); diff != "" {
				t.Errorf("matches of %s in %q (-want +got):\n%s", tc.pattern, tc.text, diff)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	cases := map[string]struct{ pattern, says string }{
		"a reference to a group":           {`(a)\1`, `\1 is not supported`},
		"a name of a group that is called": {`(?<n>a)\k<n>`, `\k is not supported`},
		"an absent group":                  {`(?~a)`, "the group is not supported"},
		"a property of nobody":             {`\p{Foo}`, `"Foo" is not supported`},
		"a property without braces":        {`\pL`, `\p is not supported`},
		"look-behind that varies":          {`(?<=a*)b`, "length that varies"},
		"look-ahead in look-behind":        {`(?<=(?=a))b`, "look-ahead within look-behind"},
		"two characters for one":           {`(?i:ss)`, "'ß' equals \"ss\""},
		"one character for two":            {`(?i)[a-zß]`, "equals several characters"},
		"an endless loop of nothing":       {`(?:a|)*`, "may match nothing"},
		"a repetition of nothing":          {`*a`, "repeats nothing"},
		"a repetition of a place":          {`(?:^|a)*`, "matches no characters"},
		"a bracket without its end":        {`[a`, "not closed"},
		"a parenthesis without its end":    {`(a`, "not closed"},
		"a parenthesis without its start":  {`a)`, "not open"},
		"a range that is none":             {`[\d-x]`, "begins with a set"},
		"a range turned round":             {`[z-a]`, "smaller one first"},
		"a great count":                    {`a{1001}`, "1000 repetitions"},
		"counts of counts":                 {`((((((a{9}){9}){9}){9}){9}){9}){9}`, "too large"},
		"counts of nothing":                {`((((((){900}){900}){900}){900}){900}){900}`, "too large"},
		"many choices":                     {strings.Repeat("a?", 600), "too many alternatives"},
		"many choices in look-ahead":       {"(?=" + strings.Repeat("a?", 60) + ")", "too many alternatives"},
		"deep groups":                      {strings.Repeat("(", 1000) + strings.Repeat(")", 1000), "nested"},
		"deep brackets":                    {strings.Repeat("[", 1000) + "a" + strings.Repeat("]", 1000), "nested"},
		"a long pattern":                   {strings.Repeat("a", 20_000), "at most 16384"},
		"an end in an escape":              {`a\`, "ends with a backslash"},
		"another encoding":                 {"\xff", "not UTF-8"},
		"half a surrogate":                 {`\x{d800}`, "not the number of a character"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(tc.pattern)
			var known *Error
			if !errors.As(err, &known) || !strings.Contains(known.Problem, tc.says) {
				t.Errorf("got %v, want an *Error with %q", err, tc.says)
			}
		})
	}
}

// steps returns how many steps a search for all matches takes.
func steps(r *Regexp, text string) int {
	s := newSearch(r, text)
	defer s.release()
	before, last := s.steps, -1
	for from := 0; from <= len(text); {
		_, end, ok := s.find(from)
		if !ok {
			break
		}
		if from = end; end == last {
			from++
		}
		last = end
	}
	return before - s.steps
}

// TestTimeIsLinear checks that a search backtracks so rarely that its time is linear in the length of the text,
// whatever the pattern.
func TestTimeIsLinear(t *testing.T) {
	cases := map[string]struct{ pattern, text string }{
		"repetitions of repetitions": {`(?:a+)+b`, "a"},
		"alternatives that are one":  {`(?:a|a|aa)+b`, "a"},
		"a long run before nothing":  {`a+b`, "a"},
		"an atomic run before":       {`(?>a+)b`, "a"},
		"a possessive run":           {`(?:ab)++c`, "ab"},
		"a look ahead to the end":    {`a(?=a*b)`, "a"},
		"a look ahead that is there": {`a(?=(?:ab?)+$)c`, "ab"},
		"spaces and no newline":      {`\s*[\r\n]+x`, " "},
		"a quadratic pattern":        {`.*.*=.*`, "x"},
		"lazy repetitions":           {`(?:a*?a*?)b`, "a"},
		"three bytes a character":    {`(?:\p{Han}+)+b`, "日"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := compiled(t, tc.pattern)
			short, long := steps(r, strings.Repeat(tc.text, 20_000)), steps(r, strings.Repeat(tc.text, 80_000))
			if long > 5*short {
				t.Errorf("%d steps for a text, and %d for one four times as long", short, long)
			}
			if limit := 80_000 * len(tc.text) * (stepsPerByte + 10*len(r.steady.code)); long > limit+stepsAtLeast {
				t.Errorf("%d steps, want at most %d", long, limit)
			}
		})
	}
}

// FuzzRegex compiles any patterns. The two programs of a pattern find the same matches, and so does a search with a
// memory.
func FuzzRegex(f *testing.F) {
	f.Add(`(?i:'s|'t)|[^\r\n\p{L}]?\p{L}+|\s+(?!\S)|\s+`, "It's 2026  日本語\n\n x")
	f.Add(`(?>a|ab)+?(?<=b)[^\s&&[:alpha:]]{1,3}\b`, "abab b  12")
	f.Add(`(?:(?:a*)+|b)++$`, "aaab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		text = strings.ToValidUTF8(text, "")
		r, err := Compile(pattern)
		var known *Error
		if err != nil {
			if !errors.As(err, &known) {
				t.Fatalf("%v is not an *Error", err)
			}
			return
		}
		if len(text) > 2000 {
			text = strings.ToValidUTF8(text[:2000], "")
		}
		quick := found(r, text)
		slow := found(&Regexp{pattern: pattern, fast: r.steady, steady: r.steady}, text)
		s := newSearch(&Regexp{pattern: pattern, fast: r.fast, steady: r.steady}, text)
		s.memory = newMemory(r.steady, len(text))
		remembered := [][2]int{}
		each(s, func(start, end int) { remembered = append(remembered, [2]int{start, end}) })
		if diff := cmp.Diff(quick, slow); diff != "" {
			t.Errorf("%q in %q: the programs differ (-fast +steady):\n%s", pattern, text, diff)
		}
		if diff := cmp.Diff(quick, remembered); diff != "" {
			t.Errorf("%q in %q: the memory changes matches (-without +with):\n%s", pattern, text, diff)
		}
	})
}

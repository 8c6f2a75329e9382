// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package split

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// pieces cuts a whole text.
func pieces(scan Scanner, text string) []string {
	var all []string
	for len(text) > 0 {
		n := scan(text)
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// TestVectors compares pieces with those of the reference.
// `go test -tags models ./test/models -run TestSplitVectors -update` regenerates them.
func TestVectors(t *testing.T) {
	file, err := os.ReadFile("testdata/pieces.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors map[string][][]string
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		scan, patterns, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(patterns) > 0 && len(vectors[name]) == 0 {
			t.Errorf("there are no vectors of %s", name)
		}
		t.Run(name, func(t *testing.T) {
			for _, want := range vectors[name] {
				if diff := cmp.Diff(want, pieces(scan, strings.Join(want, ""))); diff != "" {
					t.Errorf("%q (-want +got):\n%s", strings.Join(want, ""), diff)
				}
			}
		})
	}
}

func TestByPatterns(t *testing.T) {
	for _, name := range Names() {
		_, patterns, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ByPatterns(patterns); err != nil {
			t.Errorf("%s is not found by its patterns: %v", name, err)
		}
	}
	patterns := []string{`\p{N}{1,3}`, `\s+`}
	_, err := ByPatterns(patterns)
	var unknown *UnknownPatternError
	if !errors.As(err, &unknown) {
		t.Fatalf("unknown patterns: %v", err)
	}
	if diff := cmp.Diff(&UnknownPatternError{Patterns: patterns}, unknown); diff != "" {
		t.Errorf("UnknownPatternError (-want +got):\n%s", diff)
	}
	if _, _, err := ByName("gpt9"); err == nil {
		t.Error("a name that is not known has a scanner")
	}
}

// TestClasses checks the classes, which are from Unicode 16 and include all of Go's tables.
func TestClasses(t *testing.T) {
	tables := map[class]*unicode.RangeTable{lower: unicode.Ll, mark: unicode.M, number: unicode.N,
		space: unicode.White_Space, han: unicode.Han, letter: unicode.L}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		c := classes.of(r)
		for set, table := range tables {
			if unicode.Is(table, r) && c&set == 0 {
				t.Errorf("%U is not in class %#x", r, set)
			}
		}
	}
	for r, want := range map[rune]class{'\u1c89': upper, '\u1c8a': lower, '\U00010d50': upper, '\u0897': mark,
		'\U00010d40': number, '\U0001fae9': punctuation, '\u0378': 0} {
		if got := classes.of(r); got != want {
			t.Errorf("%U has class %#x, want %#x", r, got, want)
		}
	}
}

// FuzzSplit cuts any bytes, and checks that pieces are never empty.
func FuzzSplit(f *testing.F) {
	f.Add("It's 12345 \r\n  日本語カ・カ e\u0301A\u01c5 //\n/")
	f.Add("\x00\x01a\u0301\u0301 \u00a0 \xff'ſ")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range Names() {
			scan, _, _ := ByName(name)
			for rest := text; len(rest) > 0; {
				n := scan(rest)
				if n <= 0 || n > len(rest) {
					t.Fatalf("%s: a piece of %d bytes at the start of %q", name, n, rest)
				}
				rest = rest[n:]
			}
		}
	})
}

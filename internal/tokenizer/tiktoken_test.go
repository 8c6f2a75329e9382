// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// ranks returns a file with the number of ranks of a family: all bytes, the given tokens, and others that no text of
// the tests contains.
func ranks(count int, tokens ...string) []byte {
	var lines strings.Builder
	line := func(token []byte, rank int) {
		fmt.Fprintf(&lines, "%s %d\n", base64.StdEncoding.EncodeToString(token), rank)
	}
	for i := range 256 {
		line([]byte{byte(i)}, i)
	}
	for i, token := range tokens {
		line([]byte(token), 256+i)
	}
	for i := 256 + len(tokens); i < count; i++ {
		line([]byte{0xff, byte(i), byte(i >> 8), byte(i >> 16)}, i)
	}
	return []byte(lines.String())
}

const kimiRanks = 163584

func TestParseTiktoken(t *testing.T) {
	// "abc" merges from ab and c, or from a and bc, depending on the ranks. No merges produce "hello".
	file := ranks(kimiRanks, "bc", "ab", "abc", "hello")
	tokens, err := ParseTiktoken("kimi_k2", file, nil)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		text  string
		match Match
		want  []int32
	}{
		"the lowest rank is merged first":      {"xabcx", Literal, []int32{'x', 258, 'x'}},
		"a whole piece wins without merges":    {"hello", Literal, []int32{259}},
		"a part of a piece needs merges":       {"hellos", Literal, bytesOf("hellos")},
		"special tokens are text":              {"[BOS]", Literal, bytesOf("[BOS]")},
		"special tokens are found on request":  {"a<think>b", Specials, []int32{'a', 163606, 'b'}},
		"tokens without a name have one by id": {"<|reserved_token_163600|>", Specials, []int32{163600}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tokens.AppendEncode(nil, tc.text, tc.match)); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a configuration gives other names", func(t *testing.T) {
		tokens, err := ParseTiktoken("kimi_k2", file, []byte(`{"added_tokens_decoder":{"163584":{"content":"[BEGIN]"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int32{"[BEGIN]": 163584, "<|reserved_token_163606|>": 163606} {
			if id, ok := tokens.Special(name); !ok || id != want {
				t.Errorf("Special(%s) = %d, %v, want %d", name, id, ok, want)
			}
		}
	})
}

func TestParseTiktokenErrors(t *testing.T) {
	file := ranks(kimiRanks)
	cases := map[string]struct {
		family        string
		ranks, config string
		says          string
	}{
		"an unknown family":          {"gpt9", "", "", "only for kimi_k2, o200k_base"},
		"a file that ends early":     {"kimi_k2", string(file[:len(file)/2]), "", "want 163584"},
		"too few ranks":              {"kimi_k2", string(ranks(1000)), "", "1000 ranks up to 999, want 163584"},
		"another family's ranks":     {"o200k_base", string(file), "", "want 199998"},
		"a line without a rank":      {"kimi_k2", "hello\n", "", "line 1"},
		"a rank twice":               {"kimi_k2", "IQ== 0\nIg== 0\n", "", "line 2"},
		"a token twice":              {"kimi_k2", strings.Replace(string(file), "AQ== 1\n", "AA== 1\n", 1), "", "same bytes"},
		"a token that is not base64": {"kimi_k2", "!! 0\n", "", "not base64"},
		"a configuration of none":    {"kimi_k2", string(file), "{}", "added_tokens_decoder: the field is missing"},
		"a name of another's id": {"kimi_k2", string(file), `{"added_tokens_decoder":{"5":{"content":"x"}}}`,
			`"5" is not an id from 163584`},
		"a name that is not text": {"kimi_k2", string(file), `{"added_tokens_decoder":{"163584":{"content":5}}}`,
			"tokenizer_config.json"},
		"two tokens with one name": {"kimi_k2", string(file),
			`{"added_tokens_decoder":{"163584":{"content":"<x>"},"163585":{"content":"<x>"}}}`, "twice"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var config []byte
			if tc.config != "" {
				config = []byte(tc.config)
			}
			if _, err := ParseTiktoken(tc.family, []byte(tc.ranks), config); err == nil || !strings.Contains(err.Error(),
				tc.says) {
				t.Errorf("ParseTiktoken: %v, want … %s …", err, tc.says)
			}
		})
	}
}

func TestKimiPortions(t *testing.T) {
	run := strings.Repeat
	cases := map[string]struct {
		text string
		want []int // It has the number of characters of each portion.
	}{
		"short text is whole":              {"hello", []int{5}},
		"a run at the limit is whole":      {run("é", 25_000), []int{25_000}},
		"a run is cut at the limit":        {run("é", 25_001), []int{25_000, 1}},
		"white space is a run too":         {run(" \n", 20_000), []int{25_000, 15_000}},
		"U+001C is white space to Python":  {run("a", 20_000) + "\x1c" + run("a", 20_000), []int{40_001}},
		"U+200B is not white space":        {run("a", 20_000) + "\u200b" + run("a", 20_000), []int{25_000, 15_001}},
		"text is cut at 400,000":           {run("a ", 200_001), []int{400_000, 2}},
		"a run does not cross that cut":    {run("a ", 190_000) + run("b", 40_000), []int{400_000, 20_000}},
		"the count continues after a run":  {run("b", 30_000) + run("a ", 190_000), []int{25_000, 375_000, 10_000}},
		"a run begins anew after its cut":  {run("a", 75_000), []int{25_000, 25_000, 25_000}},
		"another character ends a run too": {run("a", 25_000) + " " + run("a", 25_000), []int{50_001}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			portions := kimiPortions(tc.text)
			for _, portion := range portions {
				got = append(got, utf8.RuneCountInString(portion))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || strings.Join(portions, "") != tc.text {
				t.Errorf("portions (-want +got):\n%s", diff)
			}
		})
	}
}

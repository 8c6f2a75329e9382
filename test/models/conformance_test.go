// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

type (
	textQuestion struct {
		Text string `json:"text"`
	}
	encodeAnswer struct {
		IDs   []int32 `json:"ids"`
		Lit   []int32 `json:"lit"`
		Plain []int32 `json:"plain"`
	}
	idsQuestion struct {
		IDs []int32 `json:"ids"`
	}
	decodeAnswer struct {
		Text string `json:"text"`
		Skip string `json:"skip"`
	}
)

// number returns a number from the environment; usual is the default.
func number(t testing.TB, name string, usual uint64) uint64 {
	value := os.Getenv(name)
	if value == "" {
		return usual
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// samples returns the texts that a family is compared on: MODELS_TEXTS of them (2000), or a share, by MODELS_SEED (1).
func samples(t testing.TB, names []string, share uint64) func(yield func(textQuestion) bool) {
	count, seed := number(t, "MODELS_TEXTS", 2000)/share, number(t, "MODELS_SEED", 1)
	t.Logf("MODELS_TEXTS=%d MODELS_SEED=%d", count, seed)
	return func(yield func(textQuestion) bool) {
		made := newTexts(seed, names)
		for i := range count {
			text := made.one()
			if i%1000 == 999/share {
				text = made.long()
			}
			if !yield(textQuestion{text}) {
				return
			}
		}
	}
}

// same compares a tokenizer with the reference on texts and on ids, and says how many differ.
func same(t *testing.T, tokens *tokenizer.BPE, names []string, reference []string, skips bool) {
	wrong, compared := 0, 0
	differ := func(what string, of, want, got any) {
		if wrong++; wrong <= 5 {
			t.Errorf("%s of %.2000q (-want +got):\n%s", what, of, cmp.Diff(want, got))
		}
	}
	var used []int32
	ask(t, reference, samples(t, names, 1), func(q textQuestion, want encodeAnswer) {
		compared++
		used = append(used, want.IDs[:min(len(want.IDs), 20)]...)
		for _, way := range []struct {
			name  string
			match tokenizer.Match
			want  []int32
		}{{"specials", tokenizer.Specials, want.IDs}, {"literal", tokenizer.Literal, want.Lit},
			{"plain", tokenizer.Plain, want.Plain}} {
			if got := tokens.AppendEncode(nil, q.Text, way.match); !slices.Equal(got, way.want) {
				differ(way.name, q.Text, way.want, got)
			}
		}
	})
	ask(t, reference, lists(t, used, 1), func(q idsQuestion, want decodeAnswer) {
		compared++
		if got, err := tokens.Decode(q.IDs); err != nil || got != want.Text {
			differ("text", q.IDs, want.Text, got)
		}
		var ordinary []int32
		for _, id := range q.IDs {
			if !skips || !tokens.IsSpecial(id) {
				ordinary = append(ordinary, id)
			}
		}
		if got, err := tokens.Decode(ordinary); err != nil || got != want.Skip {
			differ("text without special tokens", q.IDs, want.Skip, got)
		}
	})
	t.Logf("%d mismatches in %d comparisons", wrong, compared)
}

// lists returns lists of random ids, so that characters are incomplete.
func lists(t testing.TB, ids []int32, share uint64) func(yield func(idsQuestion) bool) {
	count, made := number(t, "MODELS_TEXTS", 2000)/4/share, newTexts(number(t, "MODELS_SEED", 1), nil)
	return func(yield func(idsQuestion) bool) {
		for range count {
			list := make([]int32, 1+made.IntN(12))
			for i := range list {
				list[i] = ids[made.IntN(len(ids))]
			}
			if !yield(idsQuestion{list}) {
				return
			}
		}
	}
}

// settings is the folder of the files with the splits, normalisers, rules and added tokens to train with. Llama's are
// here: its licence keeps its vocabulary out, and its added tokens are like the tokens of the others.
const settings = root + "/internal/tokenizer/testdata/golden"

func TestTrainedVocabularies(t *testing.T) {
	for _, family := range []string{"deepseek_v3_1", "gpt_oss", "kimi_k2", "nemotron3", "qwen2_5", "qwen3", "qwen3_5",
		"llama3", "gpt2", "overlaps"} {
		t.Run(family, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "settings.json")
			write(t, from, settingsOf(t, family))
			file := filepath.Join(t.TempDir(), "tokenizer.json")
			run(t, "reference.py", "train", from, file)
			compareFile(t, file)
		})
	}
}

// settingsOf returns a tokenizer.json with the settings of a family.
func settingsOf(t testing.TB, family string) []byte {
	t.Helper()
	like := map[string]string{"llama3": "gpt_oss", "gpt2": "qwen3", "overlaps": "qwen2_5"}[family]
	if like == "" {
		return unzip(t, filepath.Join(settings, family, "tokenizer.json.gz"))
	}
	var file map[string]any
	if err := json.Unmarshal(unzip(t, filepath.Join(settings, like, "tokenizer.json.gz")), &file); err != nil {
		t.Fatal(err)
	}
	if family == "overlaps" {
		file["added_tokens"] = overlapping()
		return []byte(quoted(t, file))
	}
	_, patterns, err := split.ByName(family)
	if err != nil {
		t.Fatal(err)
	}
	file["pre_tokenizer"] = map[string]any{"type": "Sequence", "pretokenizers": []any{
		map[string]any{"type": "Split", "pattern": map[string]any{"Regex": patterns[0]}, "behavior": "Isolated",
			"invert": false},
		map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
	}}
	return []byte(quoted(t, file))
}

// overlapping returns added tokens that no family has: tokens that begin within each other, composed characters, and
// tokens that are written like bytes.
func overlapping() []any {
	var tokens []any
	add := func(content string, special, normalized bool) {
		tokens = append(tokens, map[string]any{"id": 1000 + len(tokens), "content": content, "special": special,
			"normalized":  normalized,
			"single_word": false, "lstrip": false, "rstrip": false})
	}
	for _, content := range []string{"<a>", "a>b", "<a>>", "b<", "é", "Ġ", "\u0301x", "中文"} {
		add(content, len(tokens)%2 == 0, false)
	}
	for _, content := range []string{"éy", "<a", "ab", "b<a>", "字中", "x\u0323"} {
		add(content, len(tokens)%2 == 0, true)
	}
	return tokens
}

func compareFile(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var added struct {
		Tokens []struct{ Content string } `json:"added_tokens"`
	}
	if err := json.Unmarshal(text, &added); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, token := range added.Tokens {
		names = append(names, token.Content)
	}
	same(t, tokens, names, []string{"tokenizer", file}, true)
}

// rankFiles are the families that come as rank files, with the numbers of ranks and special tokens of each.
var rankFiles = map[string]struct {
	split      string
	ranks, all int
	released   string
	arguments  []string
}{
	"kimi_k2": {split: "kimi_k2", ranks: 163584, all: 163840, released: "kimi_k2/tiktoken.model.gz",
		arguments: []string{"--kimi"}},
	"o200k_base": {split: "o200k", ranks: 199998, all: 200019, released: "gpt_oss/o200k_base.tiktoken.gz"},
}

func TestTrainedRanks(t *testing.T) {
	for family, f := range rankFiles {
		t.Run(family, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ranks")
			run(t, "reference.py", "ranks", strconv.Itoa(f.ranks), file)
			compareRanks(t, family, file)
		})
	}
}

func compareRanks(t *testing.T, family, file string) {
	f := rankFiles[family]
	ranks, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.ParseTiktoken(family, ranks, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, patterns, err := split.ByName(f.split)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	specials := map[string]int32{}
	for id := int32(f.ranks); id < int32(f.all); id++ {
		name, _ := tokens.Token(id)
		names = append(names, name)
		specials[name] = id
	}
	same(t, tokens, names, append([]string{"tiktoken", file, quoted(t, patterns[0]), quoted(t, specials)}, f.arguments...),
		false)
}

// TestReleasedVocabularies compares the parts of released vocabularies that are committed, and with
// TOKENIZERS_DIR the whole vocabularies.
func TestReleasedVocabularies(t *testing.T) {
	folder := os.Getenv("TOKENIZERS_DIR")
	if folder == "" {
		compareCommitted(t)
		return
	}
	for _, family := range []string{"deepseek_v3_1", "gpt_oss", "llama3", "nemotron3", "qwen2_5", "qwen3", "qwen3_5"} {
		t.Run(family, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tokenizer.json")
			write(t, file, unzip(t, filepath.Join(folder, family, "tokenizer.json.gz")))
			compareFile(t, file)
		})
	}
	for family, f := range rankFiles {
		t.Run(family, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ranks")
			write(t, file, unzip(t, filepath.Join(folder, f.released)))
			compareRanks(t, family, file)
		})
	}
}

func compareCommitted(t *testing.T) {
	const committed = "../../internal/tokenizer/testdata/golden"
	for _, family := range []string{"deepseek_v3_1", "gpt_oss", "nemotron3", "qwen2_5", "qwen3", "qwen3_5"} {
		t.Run(family, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tokenizer.json")
			write(t, file, unzip(t, filepath.Join(committed, family, "tokenizer.json.gz")))
			compareFile(t, file)
		})
	}
}

func quoted(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unzip(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

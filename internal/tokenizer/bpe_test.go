// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/nfc"
)

const golden = "testdata/golden/"

// plainMerge is a slow reference implementation of merge.
func plainMerge(t *BPE, piece string) []int32 {
	ids := make([]int32, len(piece))
	for i := range len(piece) {
		ids[i] = t.byteIDs[piece[i]]
	}
	for {
		best, at := uint32(noRank), 0
		for i := range len(ids) - 1 {
			if rank := t.pairs.rank(ids[i], ids[i+1]); rank < best {
				best, at = rank, i
			}
		}
		if best == noRank {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, t.pairs.into[best])
	}
}

func TestMergeOfLongPieces(t *testing.T) {
	tokens := load(t, golden+"qwen3")
	pieces := map[string]string{
		"one byte":           "a",
		"few":                strings.Repeat("ab", fewBytes/2),
		"one more than few":  strings.Repeat("ab", fewBytes/2) + "c",
		"one letter":         strings.Repeat("a", 999),
		"spaces":             strings.Repeat(" ", 1000),
		"words":              strings.Repeat("reinforcement", 60),
		"characters of many": strings.Repeat("日本語", 200),
		"no text":            strings.Repeat("\xff\x00", 300),
	}
	for name, piece := range pieces {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(plainMerge(tokens, piece), tokens.merge(nil, piece)); diff != "" {
				t.Errorf("merge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeOfBrokenUTF8(t *testing.T) {
	tokens := load(t, golden+"qwen3")
	if diff := cmp.Diff(tokens.Encode("a\ufffdb\ufffd"), tokens.Encode("a\xe2\x82b\xff")); diff != "" {
		t.Errorf("broken UTF-8 and its decoded form are encoded differently (-want +got):\n%s", diff)
	}
}

func TestEncodeInParallel(t *testing.T) {
	tokens := load(t, golden+"qwen3")
	text := strings.Repeat("It's 2026: reinforcement learning, 日本語 e\u0301 <think>", 20)
	want := load(t, golden+"qwen3").Encode(text)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				if got := tokens.Encode(text); !slices.Equal(got, want) {
					t.Errorf("two encode at once: got %v, want %v", got, want)
				}
			}
		})
	}
	wait.Wait()
}

func TestEncodeAllocatesNothing(t *testing.T) {
	tokens := load(t, golden+"qwen3")
	text := strings.Repeat("It's 2026: reinforcement learning with <think> and 日本語\n", 50)
	ids := tokens.Encode(text)
	if n := testing.AllocsPerRun(10, func() { ids = tokens.AppendEncode(ids[:0], text, Literal) }); n > 0 {
		t.Errorf("%v allocations for %d tokens", n, len(ids))
	}
}

// FuzzRoundTrip encodes and decodes with every Match, and compares the two implementations of merge.
func FuzzRoundTrip(f *testing.F) {
	families := map[string]*BPE{}
	for _, name := range []string{"deepseek_v3_1", "gpt_oss", "kimi_k2", "nemotron3", "qwen2_5", "qwen3_5"} {
		families[name] = load(f, golden+name)
	}
	f.Add("It's 2026, 日本語 e\u0301\u0327 \r\n\r\n  <|im_end|> \xe2\x82")
	f.Add("中a中a ſ'ſ 12345")
	f.Fuzz(func(t *testing.T, text string) {
		valid := strings.ToValidUTF8(text, "")
		for name, tokens := range families {
			want := valid
			if tokens.normalize != nil {
				want = nfc.String(valid)
			}
			for _, match := range []Match{Literal, Plain} {
				got, err := tokens.Decode(tokens.AppendEncode(nil, valid, match))
				if err != nil || nfc.String(got) != nfc.String(want) {
					t.Errorf("%s: %q becomes %q, %v", name, valid, got, err)
				}
			}
			if text != "" && len(text) < 200 && !slices.Equal(tokens.merge(nil, text), plainMerge(tokens, text)) {
				t.Errorf("%s: merge of %q is not what merging means", name, text)
			}
		}
	})
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestTokenizerJSON checks the vocabulary against the byte alphabet of byte-level tokenizers:
// printable bytes of Latin-1 stand for themselves, the others for the runes from 256 on, in order.
func TestTokenizerJSON(t *testing.T) {
	var file struct {
		AddedTokens []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		Model struct {
			Type   string
			Vocab  map[string]int
			Merges []string
		}
		PreTokenizer struct {
			Type           string
			AddPrefixSpace bool `json:"add_prefix_space"`
		} `json:"pre_tokenizer"`
	}
	if err := json.Unmarshal(TokenizerJSON(), &file); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	next := rune(256)
	for b := range rune(256) {
		printable := b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®'
		if printable {
			want[string(b)] = int(b)
			continue
		}
		want[string(next)] = int(b)
		next++
	}
	if diff := cmp.Diff(want, file.Model.Vocab); diff != "" {
		t.Errorf("vocabulary (-want +got):\n%s", diff)
	}
	for id := range file.Model.Vocab {
		if utf8.RuneCountInString(id) != 1 {
			t.Errorf("%q is more than one byte", id)
		}
	}
	if file.Model.Type != "BPE" || len(file.Model.Merges) != 0 || file.PreTokenizer.Type != "ByteLevel" ||
		file.PreTokenizer.AddPrefixSpace {
		t.Errorf("it does more than split into bytes: %+v", file)
	}
	specials := map[int]string{}
	for _, s := range file.AddedTokens {
		if s.Special {
			specials[s.ID] = s.Content
		}
	}
	names := map[int]string{TokenEnd: "<|end|>", TokenBOS: "<|bos|>", TokenPad: "<|pad|>", TokenReserved: "<|reserved|>"}
	if diff := cmp.Diff(names, specials); diff != "" {
		t.Errorf("special tokens (-want +got):\n%s", diff)
	}
}

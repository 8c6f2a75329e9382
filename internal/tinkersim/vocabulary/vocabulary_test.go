// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package vocabulary

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// tokenizer is a small tokenizer.json; change may alter its vocabulary and added tokens.
func tokenizer(t *testing.T, change func(vocab map[string]int, added map[string]int)) []byte {
	t.Helper()
	vocab, added := map[string]int{}, map[string]int{"<|im_start|>": 300, "<|im_end|>": 301, "<tool_call>": 302}
	for spelt, b := range byteAlphabet() {
		vocab[string(spelt)] = 255 - int(b)
	}
	vocab["Ġa"], vocab["Ã©"] = 256, 257
	if change != nil {
		change(vocab, added)
	}
	var list []map[string]any
	for name, id := range added {
		list = append(list, map[string]any{"id": id, "content": name, "special": true})
	}
	data, err := json.Marshal(map[string]any{"added_tokens": list, "model": map[string]any{"type": "BPE", "vocab": vocab}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func ranks() []byte {
	var out bytes.Buffer
	for b := range 256 {
		fmt.Fprintf(&out, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	fmt.Fprintf(&out, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(" a")), 256)
	return out.Bytes()
}

const config = `{"added_tokens_decoder": {"260": {"content": "<|im_end|>"}, "261": {"content": "[BOS]"}}}`

func load(t *testing.T, name string, files map[string][]byte) (*Vocabulary, error) {
	t.Helper()
	dir := t.TempDir()
	for file, data := range files {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(filepath.Join(dir, name))
}

func bytesOf(text string) []int32 {
	var out []int32
	for i := range len(text) {
		out = append(out, int32(text[i]))
	}
	return out
}

func TestSpell(t *testing.T) {
	fromJSON, err := load(t, "tokenizer.json", map[string][]byte{"tokenizer.json": tokenizer(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	fromRanks, err := load(t, "tiktoken.model", map[string][]byte{"tiktoken.model": ranks(), configFile: []byte(config)})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		of   *Vocabulary
		id   int32
		want []int32
	}{
		"a byte":                        {fromJSON, 255 - 'x', bytesOf("x")},
		"a byte that is not printable":  {fromJSON, 255, []int32{0}},
		"a merged token":                {fromJSON, 256, bytesOf(" a")},
		"half of a character, and more": {fromJSON, 257, []int32{0xc3, 0xa9}},
		"an added token is its name":    {fromJSON, 302, bytesOf("<tool_call>")},
		"the end is the model's end":    {fromJSON, 301, []int32{model.TokenEnd}},
		"an id in a gap":                {fromJSON, 290, nil},
		"an id behind the last":         {fromJSON, 303, nil},
		"a negative id":                 {fromJSON, -1, nil},
		"a byte of ranks":               {fromRanks, 'x', bytesOf("x")},
		"a token of ranks":              {fromRanks, 256, bytesOf(" a")},
		"an added token of the config":  {fromRanks, 261, bytesOf("[BOS]")},
		"the end of the config":         {fromRanks, 260, []int32{model.TokenEnd}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.of.Spell(tc.id)); diff != "" {
				t.Errorf("Spell(%d) (-want +got):\n%s", tc.id, diff)
			}
		})
	}
	if fromJSON.Size() != 303 || fromJSON.End() != 301 || fromRanks.Size() != 262 {
		t.Errorf("sizes %d and %d, end %d", fromJSON.Size(), fromRanks.Size(), fromJSON.End())
	}
}

// TestTokenAndSpellAgree checks that any token that can be sampled is read back as the token that was drawn.
func TestTokenAndSpellAgree(t *testing.T) {
	v, err := load(t, "tokenizer.json", map[string][]byte{"tokenizer.json": tokenizer(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	for own := range int32(model.Vocab) {
		id, ok := v.Token(own)
		if ok != (own <= model.TokenEnd) {
			t.Errorf("Token(%d): %v", own, ok)
		}
		if diff := cmp.Diff([]int32{own}, v.Spell(id)); ok && diff != "" {
			t.Errorf("Spell(Token(%d)) (-want +got):\n%s", own, diff)
		}
	}
}

func TestFile(t *testing.T) {
	data := tokenizer(t, nil)
	v, err := load(t, "qwen3.json", map[string][]byte{"qwen3.json": data, configFile: []byte(`{"a": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tokenizer.json": string(data), configFile: `{"a": 1}`, "merges.txt": ""} {
		if got := string(v.File(name)); got != want {
			t.Errorf("File(%s) has %d bytes, want %d", name, len(got), len(want))
		}
	}
}

func TestTurnEndPrecedence(t *testing.T) {
	v, err := load(t, "tokenizer.json", map[string][]byte{"tokenizer.json": tokenizer(t, func(_, added map[string]int) {
		delete(added, "<|im_end|>")
		added["<|end|>"], added["<|return|>"] = 305, 306
	})})
	if err != nil || v.End() != 306 {
		t.Fatalf("the end is %v, %v, want the end of <|return|>", v, err)
	}
	if diff := cmp.Diff(bytesOf("<|end|>"), v.Spell(305)); diff != "" {
		t.Errorf("another end (-want +got):\n%s", diff)
	}
}

func TestLoadErrors(t *testing.T) {
	cases := map[string]struct {
		file  string
		files map[string][]byte
		names string
	}{
		"a file that is missing":       {"tokenizer.json", nil, "no such file"},
		"a tokenizer that is not JSON": {"tokenizer.json", map[string][]byte{"tokenizer.json": []byte("{")}, "JSON"},
		"another kind of model": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": []byte(`{"model": {"type": "Unigram"}}`)}, "Unigram"},
		"a vocabulary without an end": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": tokenizer(t, func(_, added map[string]int) { delete(added, "<|im_end|>") })},
			"ends a turn"},
		"a byte that is missing": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": tokenizer(t, func(vocab, _ map[string]int) { delete(vocab, "x") })}, "0x78"},
		"a vocabulary of another kind": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": tokenizer(t, func(vocab, _ map[string]int) { vocab["▁the"] = 280 })},
			"not byte-level"},
		"an id that is too large": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": tokenizer(t, func(vocab, _ map[string]int) { vocab["zz"] = 1 << 30 })}, "zz"},
		"a token that is too long": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": tokenizer(t,
				func(vocab, _ map[string]int) { vocab[strings.Repeat("z", 2049)] = 280 })}, "2049 bytes"},
		"a negative id": {"tokenizer.json",
			map[string][]byte{"tokenizer.json": tokenizer(t, func(vocab, _ map[string]int) { vocab["zz"] = -2 })}, "zz"},
		"ranks without added tokens": {"tiktoken.model", map[string][]byte{"tiktoken.model": ranks()}, "ends a turn"},
		"an invalid line": {"tiktoken.model", map[string][]byte{"tiktoken.model": []byte("YQ== x\n"),
			configFile: []byte(config)}, "line 1"},
		"a config that is not JSON": {"tiktoken.model", map[string][]byte{"tiktoken.model": ranks(), configFile: []byte("{")},
			configFile},
		"a config with another id": {"tiktoken.model", map[string][]byte{"tiktoken.model": ranks(),
			configFile: []byte(`{"added_tokens_decoder": {"x": {}}}`)}, configFile},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := load(t, tc.file, tc.files)
			if err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("Load = %v, %v, want an error that names %q", v, err, tc.names)
			}
		})
	}
}

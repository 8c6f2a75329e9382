// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// The vectors come from the reference packages: texts with their ids, and ids with their text. A share of them is
// committed, with vocabularies cut down to their tokens. TOKENIZERS_DIR names a folder with all vectors and whole
// vocabularies.

// encodeVector is a text with its ids if every added token is recognised, if only tokens that are not special are, and
// if none is. Missing ids are equal to those of the field before.
type encodeVector struct {
	Text            string
	IDs, Lit, Plain []int32
}

// decodeVector has ids with their bytes, their text, and their text without special tokens. An unknown id has no bytes.
type decodeVector struct {
	IDs  []int32
	Hex  string
	Text string
	Skip *string
}

func TestGolden(t *testing.T) {
	folders, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(folders) < 7 {
		t.Fatalf("testdata has vectors of %d families, %v; want 7: all but Llama's, whose licence keeps it out", len(folders),
			err)
	}
	// Whole vocabularies are too large for this repository, and Llama's licence does not permit its vocabulary here.
	if whole := os.Getenv("TOKENIZERS_DIR"); whole != "" {
		for _, family := range []string{"qwen3", "qwen2_5", "qwen3_5", "llama3", "deepseek_v3_1", "gpt_oss", "kimi_k2",
			"nemotron3"} {
			folders = append(folders, filepath.Join(whole, family))
		}
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { goldenFamily(t, folder) })
	}
}

func goldenFamily(t *testing.T, folder string) {
	tokens := load(t, folder)
	texts, wrong := 0, 0
	each(t, filepath.Join(folder, "golden.jsonl.gz"), func(v encodeVector) {
		if v.Lit == nil {
			v.Lit = v.IDs
		}
		if v.Plain == nil {
			v.Plain = v.Lit
		}
		texts++
		for name, want := range map[string]struct {
			match Match
			ids   []int32
		}{"specials": {Specials, v.IDs}, "literal": {Literal, v.Lit}, "plain": {Plain, v.Plain}} {
			if problem := checkWhere(tokens, v.Text, want.match, want.ids); problem != "" {
				t.Errorf("%s of %q: %s", name, v.Text, problem)
			}
			got := tokens.AppendEncode(nil, v.Text, want.match)
			if slices.Equal(got, want.ids) {
				continue
			}
			if wrong++; wrong <= 5 {
				t.Errorf("%s of %q (-want +got):\n%s", name, v.Text, cmp.Diff(want.ids, got))
			}
		}
	})
	decoded := 0
	each(t, filepath.Join(folder, "decode.jsonl.gz"), func(v decodeVector) {
		decoded++
		if problem := checkDecode(tokens, v, filepath.Base(folder) != "kimi_k2"); problem != "" {
			if wrong++; wrong <= 5 {
				t.Errorf("decoding %d: %s", v.IDs, problem)
			}
		}
	})
	if wrong > 0 || texts == 0 || decoded == 0 {
		t.Errorf("%d of %d texts in three ways and %d lists of ids are wrong", wrong, texts, decoded)
	}
	t.Logf("%d texts and %d lists of ids", texts, decoded)
	surrogates(t, tokens, filepath.Join(folder, "surrogates.jsonl"))
}

func load(t testing.TB, folder string) *BPE {
	t.Helper()
	build := Parse
	file, err := gunzip(filepath.Join(folder, "tokenizer.json.gz"))
	if errors.Is(err, os.ErrNotExist) {
		build = func(ranks []byte) (*BPE, error) { return ParseTiktoken("kimi_k2", ranks, nil) }
		file, err = gunzip(filepath.Join(folder, "tiktoken.model.gz"))
	}
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := build(file)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func gunzip(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unzipped)
}

func each[T any](t *testing.T, name string, use func(T)) {
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
	for lines := json.NewDecoder(unzipped); ; {
		var v T
		if err := lines.Decode(&v); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		use(v)
	}
}

// checkDecode reports an error of the decoded text of ids. The vectors of tiktoken do not skip special tokens.
func checkDecode(tokens *BPE, v decodeVector, skips bool) string {
	var bytes, plain []byte
	known := true
	for _, id := range v.IDs {
		token, ok := tokens.Token(id)
		known = known && ok
		bytes = append(bytes, token...)
		if !tokens.IsSpecial(id) {
			plain = append(plain, token...)
		}
	}
	if v.Skip == nil {
		v.Skip = &v.Text
	}
	if diff := cmp.Diff(v.Hex, hex.EncodeToString(bytes)); diff != "" {
		return "bytes (-want +got):\n" + diff
	}
	if diff := cmp.Diff(*v.Skip, lossy(plain)); diff != "" && skips {
		return "text without special tokens (-want +got):\n" + diff
	}
	got, err := tokens.Decode(v.IDs)
	if (err == nil) != known || known && got != v.Text {
		return "text: " + cmp.Diff(v.Text, got)
	}
	return ""
}

// surrogates checks malformed UTF-16, which Go's conversion replaces in the same way as tiktoken.
func surrogates(t *testing.T, tokens *BPE, name string) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := json.NewDecoder(file); lines.More(); {
		var v struct {
			UTF16 []uint16
			IDs   []int32
		}
		if err := lines.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v.IDs, tokens.Encode(string(utf16.Decode(v.UTF16)))); diff != "" {
			t.Errorf("%x (-want +got):\n%s", v.UTF16, diff)
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func forModel(t *testing.T, name string) Tokenizer {
	t.Helper()
	tokens, err := ForModel(name)
	if err != nil {
		t.Fatalf("ForModel(%q): %v", name, err)
	}
	return tokens
}

func TestForModelUnknownModel(t *testing.T) {
	_, err := ForModel("Qwen/Qwen3-8B")
	var unknown *UnknownModelError
	if !errors.As(err, &unknown) {
		t.Fatalf("ForModel of an unknown model: err = %v", err)
	}
	if diff := cmp.Diff(&UnknownModelError{Model: "Qwen/Qwen3-8B",
		Known: []string{"tinkersim/byte-136k", "tinkersim/byte-136k-countdown", "tinkersim/rubric-judge"}},
		unknown); diff != "" {
		t.Errorf("UnknownModelError (-want +got):\n%s", diff)
	}
}

func TestByteLevelEncode(t *testing.T) {
	cases := map[string]struct {
		text string
		want []int32
	}{
		"a byte is its own id":                   {text: "A1\n", want: []int32{65, 49, 10}},
		"a character takes as many as its bytes": {text: "é€", want: []int32{0xc3, 0xa9, 0xe2, 0x82, 0xac}},
		"a special token's name is text":         {text: "<|end|>", want: []int32{'<', '|', 'e', 'n', 'd', '|', '>'}},
		"nothing is nothing":                     {text: "", want: []int32{}},
	}
	tokens := forModel(t, "tinkersim/byte-136k")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tokens.Encode(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Encode (-want +got):\n%s", diff)
			}
			if text, err := tokens.Decode(got); err != nil || text != tc.text {
				t.Errorf("Decode = %q, %v, want the text back", text, err)
			}
		})
	}
}

func TestByteLevelDecode(t *testing.T) {
	cases := map[string]struct {
		ids  []int32
		want string
		ok   bool
	}{
		"special tokens stand by their names": {ids: []int32{'4', 256, 257, 258, 259},
			want: "4<|end|><|bos|><|pad|><|reserved|>", ok: true},
		"an id beyond the vocabulary":   {ids: []int32{260}},
		"neither is a negative one":     {ids: []int32{-1}},
		"a cut character is one U+FFFD": {ids: []int32{'a', 0xe2, 0x82, 'b'}, want: "a\uFFFDb", ok: true},
	}
	tokens := forModel(t, "tinkersim/byte-136k")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tokens.Decode(tc.ids)
			if (err == nil) != tc.ok || got != tc.want {
				t.Errorf("Decode = %q, %v, want %q, success %v", got, err, tc.want, tc.ok)
			}
		})
	}
}

func TestByteLevelSpecial(t *testing.T) {
	tokens := forModel(t, "tinkersim/byte-136k")
	if id, ok := tokens.Special("<|end|>"); id != 256 || !ok {
		t.Errorf("Special(<|end|>) = %d, %v, want 256", id, ok)
	}
	if id, ok := tokens.Special("<|im_end|>"); ok {
		t.Errorf("Special(<|im_end|>) = %d, want none", id)
	}
}

func TestLossy(t *testing.T) {
	cases := map[string]struct{ bytes, want string }{
		"valid text stays":                      {bytes: "aé€😀", want: "aé€😀"},
		"a lone continuation is one":            {bytes: "\x80", want: "\uFFFD"},
		"two of them are two":                   {bytes: "\x80\x80", want: "\uFFFD\uFFFD"},
		"two of three bytes are one":            {bytes: "\xe2\x82", want: "\uFFFD"},
		"three of four bytes are one":           {bytes: "\xf0\x9f\x98", want: "\uFFFD"},
		"what breaks off is one, then text":     {bytes: "\xe2(\xa1", want: "\uFFFD(\uFFFD"},
		"a surrogate is one for each byte":      {bytes: "\xed\xa0\x80", want: "\uFFFD\uFFFD\uFFFD"},
		"an overlong form is one for each byte": {bytes: "\xc0\xaf", want: "\uFFFD\uFFFD"},
		"beyond U+10FFFF is one for each byte":  {bytes: "\xf4\x90\x80\x80", want: "\uFFFD\uFFFD\uFFFD\uFFFD"},
		"a start that another start cuts":       {bytes: "\xf0\x9f\xf0\x9f\x98\x80", want: "\uFFFD😀"},
		"U+FFFD itself stays one":               {bytes: "\xef\xbf\xbd\xff", want: "\uFFFD\uFFFD"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lossy([]byte(tc.bytes)); got != tc.want {
				t.Errorf("lossy = %q, want %q", got, tc.want)
			}
		})
	}
}

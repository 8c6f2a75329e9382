// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

var update = flag.Bool("update", false, "write internal/tokenizer/split/testdata anew, as the reference says")

// tricky has texts that once were cut wrongly, or could be.
var tricky = []string{
	"Hello, world! How's it going?", "it's IT'S it’s x'll'LL'lL'Ll 'tis o'clock'd", "'ſ x'ſy 'K 's's's ''s",
	"don''t 'RE'rE've'VE'm'M'd'D'x",
	" leading", "trailing ", "a  b   c    d", "\ttab\t\ttabs", "a\u00a0 b\u3000\u3000c", "x \n y", "x\r\n\r\n y",
	" \n \n  z", "\n\n\n", "   ", " \u0085 ", "\u200b\ufeff\u2060x",
	"\x1c\x1d a\x1fb", "1", "1234567890", "3.14159 1,000,000", "a1b22c333d4444", "١٢٣٤٥ １２３４", "Ⅻ½²①〇", " 12 345 6789",
	"x²y",
	"McDonald's iPhone XMLHttpRequest HTTPServer", "ǅaAǅ ǈǋ", "中Aa中A 中ABc", "ʰAʰa ªº", "Aa\u0301B\u0301b",
	"\u0301A \u0301a \u0301\u0301", "e\u0301tude ÉTUDE E\u0301TUDE",
	"नमस्ते क्षत्रिय", "שָׁלוֹם مرحبًا", "สวัสดี น้ำ", "ஸ்ரீ", "世界abc世界123世界", "カ・カ゛ー゠\u3099", "カ・\nー・\r\nx", "々〆〇〡⺀⼀",
	"中é中é日本。\n日本", "한국어 \u1112\u1161\u11ab", "𠀀𠮷龦鿿㐀",
	"😀😀👩‍💻🏳️‍🌈", "#\u20e3 1\ufe0f\u20e3", "://", "//\n/\n", "}\n\n/", "/\r\n/ -/", "...\n\n...", "a/b/c\\d", "!!!???\r\n",
	"«quoted» “text”", "$100 €5 ±3", "_snake_case_ -kebab-",
	"<|im_start|>user\n<think>", "\u0378\u0379a \u0378 \u0378\u0378b", "\ue000\U000f0000x\U0010ffff",
	"\U00010d50\U00010d70\u1c89\u1c8a", "\u0897\U00010d40\U0001fae9",
	"func (r *T) f(x int) error {\n\treturn nil // TODO\n}\n", "\u16ff \U00016ff0\U00016ff1a", "a \u0301 \u0301b",
	"-\u0301 .\u0301a", " '", "' ", "'", "x'", "  's", "\n's", "\r\n\t's",
}

// TestSplitVectors compares the committed pieces with the reference's pieces of today.
func TestSplitVectors(t *testing.T) {
	const name = root + "/internal/tokenizer/split/testdata/pieces.json"
	vectors := map[string][][]string{}
	for _, name := range split.Names() {
		_, patterns, err := split.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(patterns) == 0 {
			continue
		}
		all := func(yield func(textQuestion) bool) {
			for _, text := range tricky {
				if !yield(textQuestion{text}) {
					return
				}
			}
		}
		ask(t, []string{"split", quoted(t, patterns)}, all, func(q textQuestion, answer struct{ Sizes []int }) {
			var pieces []string
			for _, n := range answer.Sizes {
				pieces = append(pieces, q.Text[:n])
				q.Text = q.Text[n:]
			}
			vectors[name] = append(vectors[name], pieces)
		})
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(vectors); err != nil {
		t.Fatal(err)
	}
	written := bytes.ReplaceAll(text.Bytes(), []byte("]],\""), []byte("]],\n\""))
	written = bytes.ReplaceAll(written, []byte("],["), []byte("],\n ["))
	if *update {
		write(t, name, written)
		return
	}
	committed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), string(committed)); diff != "" {
		t.Errorf("the committed pieces are not the reference's; -update writes them anew (-want +got):\n%s", diff)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// object is a JSON object.
type object = map[string]any

// setting is how a vocabulary is trained.
type setting struct {
	Spec object `json:"spec"`
	// Alphabet means that the vocabulary has all bytes, in the alphabet of byte-level files.
	Alphabet bool `json:"alphabet"`
	// Bytes means that the vocabulary has tokens such as <0x0A> for all bytes but the missing ones.
	Bytes   bool  `json:"bytes"`
	Missing []int `json:"missing"`
	Size    int   `json:"size"`
	// Like is the setting whose vocabulary is used.
	Like string `json:"like"`
}

func sequence(list string, steps ...object) object { return object{"type": "Sequence", list: steps} }

func byteLevel(prefix, regex bool) object {
	return object{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": regex}
}

func splitStep(kind, pattern, behavior string, invert bool) object {
	return object{"type": "Split", "pattern": object{kind: pattern}, "behavior": behavior, "invert": invert}
}

func replaceStep(kind, pattern, content string) object {
	return object{"type": "Replace", "pattern": object{kind: pattern}, "content": content}
}

func metaspace(scheme string, split bool) object {
	return object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
}

func addedToken(content, flags string) object {
	has := func(flag rune) bool { return slices.Contains([]rune(flags), flag) }
	return object{"id": 0, "content": content, "special": has('s'), "normalized": has('n'), "lstrip": has('l'),
		"rstrip": has('r'), "single_word": has('w')}
}

// flagged are added tokens with every flag.
func flagged() []object {
	return []object{
		addedToken("<s>", "s"), addedToken("</s>", "s"), addedToken("<left>", "sl"), addedToken("<right>", "sr"),
		addedToken("<both>", "lr"),
		addedToken("word", "w"), addedToken("Wörd", "wn"), addedToken("<Norm é>", "n"), addedToken("<NS>", "ns"),
		addedToken("ab", ""), addedToken("<nlr>", "nlr"),
	}
}

// bytesSetting is a byte-level vocabulary with a pre-tokenizer.
func bytesSetting(pre, normalizer any) setting {
	return setting{Alphabet: true, Size: 1500, Spec: object{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": normalizer, "pre_tokenizer": pre,
		"post_processor": nil, "decoder": byteLevel(true, true),
		"added_tokens": []object{addedToken("<|end|>", "s"), addedToken("<think>", "")},
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false,
			"byte_fallback": false, "ignore_merges": false},
	}}
}

// sentencePieces is a vocabulary of characters that writes unknown characters as bytes.
func sentencePieces(normalizer, pre any, decoders ...object) setting {
	s := bytesSetting(pre, normalizer)
	s.Alphabet, s.Bytes = false, true
	s.Spec["decoder"] = sequence("decoders", decoders...)
	s.Spec["added_tokens"] = append([]object{addedToken("<unk>", "s")}, flagged()...)
	s.Spec["model"] = object{"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil,
		"end_of_word_suffix": nil, "fuse_unk": true,
		"byte_fallback": true, "ignore_merges": false}
	return s
}

func (s setting) with(fields object) setting {
	s.Spec = maps.Clone(s.Spec)
	for field, value := range fields {
		s.Spec[field] = value
	}
	return s
}

func (s setting) model(fields object) setting {
	model := maps.Clone(s.Spec["model"].(object))
	maps.Copy(model, fields)
	return s.with(object{"model": model})
}

func (s setting) like(other string) setting {
	s.Like = other
	return s
}

var (
	spacesBack = []object{replaceStep("String", "▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"}}
	stripFirst = object{"type": "Strip", "content": " ", "start": 1, "stop": 0}
	plainForms = []string{"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"}
)

// generalSettings are files that the programs for known families do not read.
func generalSettings() map[string]setting {
	prepend := object{"type": "Prepend", "prepend": "▁"}
	spaces := replaceStep("String", " ", "▁")
	all := map[string]setting{
		"llama2": sentencePieces(sequence("normalizers", prepend, spaces), nil,
			append(slices.Clone(spacesBack), stripFirst)...),
		"llama2 first": sentencePieces(nil, metaspace("first", false),
			append(slices.Clone(spacesBack), stripFirst)...),
		"gemma":            sentencePieces(spaces, splitStep("String", " ", "MergedWithPrevious", false), spacesBack...),
		"metaspace always": sentencePieces(nil, metaspace("always", true), metaspace("always", true)),
		"metaspace first": sentencePieces(nil, metaspace("first", true), object{"type": "ByteFallback"},
			metaspace("first", true)),
		"metaspace never": sentencePieces(object{"type": "NFKC"}, metaspace("never", true),
			object{"type": "ByteFallback"}, metaspace("never", true)),
		"metaspace whole": sentencePieces(nil, metaspace("always", false), object{"type": "ByteFallback"},
			metaspace("always", false)),
		"metaspace and digit": sentencePieces(nil, sequence("pretokenizers", metaspace("always", true),
			object{"type": "Digits", "individual_digits": true}), spacesBack...),
		"unknown": sentencePieces(object{"type": "NFC"}, object{"type": "Whitespace"}, object{"type": "Fuse"}).model(
			object{"byte_fallback": false, "fuse_unk": false}),
		"unknown fused": sentencePieces(object{"type": "NFC"}, object{"type": "Whitespace"},
			object{"type": "Fuse"}).model(object{"byte_fallback": false}),
		"unknown nobody": sentencePieces(nil, object{"type": "WhitespaceSplit"},
			object{"type": "Fuse"}).model(object{"byte_fallback": false, "unk_token": nil}),
		"whole wins": sentencePieces(sequence("normalizers", prepend, spaces), splitStep("String", "▁", "MergedWithNext",
			false), spacesBack...).model(object{"ignore_merges": true}),
		"fixed length": sentencePieces(nil, object{"type": "FixedLength", "length": 5},
			object{"type": "ByteFallback"}).like("metaspace never"),
		"delimiter": sentencePieces(nil, object{"type": "CharDelimiterSplit", "delimiter": "e"},
			object{"type": "ByteFallback"}).like("metaspace never"),
		"strips": sentencePieces(object{"type": "Strip", "strip_left": true, "strip_right": true},
			metaspace("always", true), spacesBack...),
		"strips left": sentencePieces(object{"type": "Strip", "strip_left": true, "strip_right": false}, nil,
			spacesBack...).like("metaspace always"),
		"replaces": sentencePieces(sequence("normalizers", replaceStep("Regex", `\s+`, " "),
			replaceStep("Regex", `\p{N}`, ""), spaces,
			replaceStep("Regex", `(?<=[a-z])(?=[A-Z])`, "_")), nil, replaceStep("Regex", `▁+`, " "),
			object{"type": "ByteFallback"},
			object{"type": "Strip", "content": "a", "start": 0, "stop": 1}, object{"type": "Strip", "content": "e", "start": 2,
				"stop": 0}),
		"prefix space":     bytesSetting(byteLevel(true, true), nil),
		"prefix no regex":  bytesSetting(byteLevel(true, false), nil),
		"bytes normalized": bytesSetting(splitStep("Regex", `Ġ?[^Ġ]+`, "Isolated", false), object{"type": "ByteLevel"}),
		"bytes then split": bytesSetting(sequence("pretokenizers", byteLevel(false, false),
			splitStep("Regex", `Ġ?\p{L}+`, "Isolated", false)), nil),
		"bytes flags": bytesSetting(byteLevel(true, true), object{"type": "NFKC"}).with(object{"added_tokens": flagged()}),
		"nested": bytesSetting(sequence("pretokenizers",
			sequence("pretokenizers", object{"type": "Digits", "individual_digits": false}),
			object{"type": "Punctuation", "behavior": "MergedWithNext"}, byteLevel(false, true)),
			sequence("normalizers", sequence("normalizers", object{"type": "NFD"}), object{"type": "Lowercase"})),
	}
	some := sentencePieces(nil, metaspace("always", true), spacesBack...)
	some.Missing = []int{0xe2, 0xf0, 0x01, 0xce}
	all["some bytes"], all["some bytes apart"] = some, some.model(object{"fuse_unk": false})
	for i, pattern := range []string{
		`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`,
		`[\p{L}\p{N}]+|[^\s\p{L}\p{N}]+|\s+`, `[一-龥぀-ゟ゠-ヿ]+`, ` ?[^(\s|.,!?…。，、।۔،)]+`, `\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})`,
	} {
		all["pattern "+string(rune('a'+i))] = bytesSetting(sequence("pretokenizers",
			splitStep("Regex", pattern, "Isolated", false), byteLevel(false, false)), nil).like("nested")
	}
	for _, behavior := range []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		for _, invert := range []bool{false, true} {
			name := behavior + map[bool]string{true: " inverted"}[invert]
			all["regex "+name] = bytesSetting(sequence("pretokenizers", splitStep("Regex", `\p{L}|\d+|\b`, behavior, invert),
				byteLevel(false, false)), nil).like("nested")
			all["string "+name] = bytesSetting(sequence("pretokenizers", splitStep("String", "e", behavior, invert),
				byteLevel(false, true)), nil).like("nested")
		}
		all["punctuation "+behavior] = sentencePieces(nil, object{"type": "Punctuation", "behavior": behavior},
			object{"type": "ByteFallback"}).like("metaspace never")
	}
	for _, form := range plainForms {
		all["form "+form] = sentencePieces(object{"type": form}, metaspace("always", true),
			spacesBack...).like("metaspace always")
	}
	return all
}

// TestGeneralTokenizers trains a vocabulary for each setting, and compares it with the reference.
func TestGeneralTokenizers(t *testing.T) {
	folder, all := t.TempDir(), generalSettings()
	for name, s := range all {
		if s.Missing == nil {
			s.Missing = []int{}
		}
		write(t, filepath.Join(folder, name+".settings"), []byte(quoted(t, s)))
	}
	run(t, "reference.py", "train-all", folder)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareGeneral(t, filepath.Join(folder, name+".json"))
		})
	}
}

func compareGeneral(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	general, ok := tokens.(*tokenizer.General)
	if !ok {
		t.Fatalf("the file is read as a %T", tokens)
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
	sameGeneral(t, general, names, file)
}

type (
	// eitherQuestion is a text, or ids.
	eitherQuestion struct {
		Text *string `json:"text,omitempty"`
		IDs  []int32 `json:"ids,omitempty"`
	}
	eitherAnswer struct {
		encodeAnswer
		Text, Skip string
	}
)

func (a eitherAnswer) equal(b eitherAnswer) bool {
	return a.Text == b.Text && a.Skip == b.Skip && slices.Equal(a.IDs, b.IDs) && slices.Equal(a.Lit, b.Lit) &&
		slices.Equal(a.Plain, b.Plain)
}

// sameGeneral does what same does for a general tokenizer, with one process of the reference.
func sameGeneral(t *testing.T, tokens *tokenizer.General, names []string, file string) {
	const share = 16 // of the texts of a family with a program
	questions := func(yield func(eitherQuestion) bool) {
		var used []int32
		for q := range samples(t, names, share) {
			ids := tokens.AppendEncode(nil, q.Text, tokenizer.Specials)
			used = append(used, ids[:min(len(ids), 20)]...)
			if !yield(eitherQuestion{Text: &q.Text}) {
				return
			}
		}
		for q := range lists(t, used, share) {
			if !yield(eitherQuestion{IDs: q.IDs}) {
				return
			}
		}
	}
	wrong, compared := 0, 0
	ask(t, []string{"tokenizer", file}, questions, func(q eitherQuestion, want eitherAnswer) {
		compared++
		got := eitherAnswer{}
		if q.Text != nil {
			got.IDs, got.Lit = tokens.AppendEncode([]int32{}, *q.Text, tokenizer.Specials),
				tokens.AppendEncode([]int32{}, *q.Text, tokenizer.Literal)
			got.Plain = tokens.AppendEncode([]int32{}, *q.Text, tokenizer.Plain)
		} else {
			var errs [2]error
			got.Text, errs[0] = tokens.Decode(q.IDs)
			got.Skip, errs[1] = tokens.Decode(slices.DeleteFunc(slices.Clone(q.IDs), tokens.IsSpecial))
			if err := errors.Join(errs[:]...); err != nil {
				t.Errorf("decoding %d: %v", q.IDs, err)
			}
		}
		if want.equal(got) {
			return
		}
		if wrong++; wrong <= 5 {
			t.Errorf("%.2000q, %d (-want +got):\n%s", pointed(q.Text), q.IDs,
				cmp.Diff(want, got, cmp.AllowUnexported(eitherAnswer{})))
		}
	})
	t.Logf("%d mismatches in %d comparisons", wrong, compared)
}

func pointed(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

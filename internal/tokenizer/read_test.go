// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// generalVectors are a file with the ids and texts that the reference gives for it.
type generalVectors struct {
	Tokenizer json.RawMessage
	Texts     []struct {
		Text            string
		IDs, Lit, Plain []int32
	}
	Lists []struct {
		IDs        []int32
		Text, Skip string
	}
}

func generalFile(t testing.TB, name string) (*General, generalVectors) {
	t.Helper()
	data, err := gunzip(name)
	if err != nil {
		t.Fatal(err)
	}
	var v generalVectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	tokens, err := Read(v.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	general, ok := tokens.(*General)
	if !ok {
		t.Fatalf("the file is read as a %T, want a *General", tokens)
	}
	return general, v
}

func generalFiles(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/general/*.json.gz")
	if err != nil || len(names) < 24 {
		t.Fatalf("testdata has %d files, %v; want 24", len(names), err)
	}
	return names
}

// TestGeneralGolden compares with vectors of the reference.
// `go test -tags models ./test/models -run TestGeneralVectors -update` records them again.
func TestGeneralGolden(t *testing.T) {
	for _, name := range generalFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json.gz"), func(t *testing.T) {
			tokens, v := generalFile(t, name)
			for _, want := range v.Texts {
				for match, ids := range map[Match][]int32{Specials: want.IDs, Literal: want.Lit, Plain: want.Plain} {
					if problem := checkWhere(tokens, want.Text, match, ids); problem != "" {
						t.Errorf("ids of %q: %s", want.Text, problem)
					}
					for range 2 { // The second time, pieces are cached.
						if got := tokens.AppendEncode(nil, want.Text, match); !slices.Equal(got, ids) {
							t.Errorf("ids of %q in way %d (-want +got):\n%s", want.Text, match, cmp.Diff(ids, got))
						}
					}
				}
			}
			for _, want := range v.Lists {
				got, err := tokens.Decode(want.IDs)
				if err != nil || got != want.Text {
					t.Errorf("text of %d: got %q, %v, want %q", want.IDs, got, err, want.Text)
				}
				ordinary := slices.DeleteFunc(slices.Clone(want.IDs), tokens.IsSpecial)
				if got, err := tokens.Decode(ordinary); err != nil || got != want.Skip {
					t.Errorf("text of %d without special tokens: got %q, %v, want %q", want.IDs, got, err, want.Skip)
				}
			}
			if len(v.Texts) < 100 || len(v.Lists) < 40 {
				t.Errorf("there are %d texts and %d lists", len(v.Texts), len(v.Lists))
			}
		})
	}
}

// TestReadUsesPrograms checks that files for which there is a program are read by it, and others by a *General.
func TestReadUsesPrograms(t *testing.T) {
	tokens, err := Read(encodeJSON(t, small()))
	if _, ok := tokens.(*BPE); !ok || err != nil {
		t.Errorf("Read returns a %T, %v, want a *BPE", tokens, err)
	}
	file := small()
	file["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []any{
		object{"type": "Split", "pattern": object{"Regex": `\p{N}{1,3}`}, "behavior": "Isolated", "invert": false},
		object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	}}
	tokens, err = Read(encodeJSON(t, file))
	if _, ok := tokens.(*General); !ok || err != nil {
		t.Fatalf("Read returns a %T, %v, want a *General", tokens, err)
	}
	if id, ok := tokens.Special("<think>"); id != 261 || !ok {
		t.Errorf("Special(<think>) = %d, %v, want 261", id, ok)
	}
	want := append([]int32{259, 32, 258}, append(bytesOf("<|end|>\xef\xbf\xbd"), 261)...)
	if diff := cmp.Diff(want, tokens.Encode("hello hell<|end|>\xff<think>")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if _, err := tokens.Decode([]int32{'a', 262}); err == nil || !strings.Contains(err.Error(), "no id 262") {
		t.Errorf("decoding an unknown id: got %v, want an error that names it", err)
	}
}

// sentencePiece returns a file like that of Llama 2, with "▁a", all bytes and a special token.
func sentencePiece() object {
	vocab := object{"<unk>": 0, "▁": 1, "a": 2, "▁a": 3, "é": 4}
	for b := range 256 {
		vocab["<0x"+strings.ToUpper(string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))+">"] = 5 + b
	}
	replace := func(from, to string) object {
		return object{"type": "Replace", "pattern": object{"String": from}, "content": to}
	}
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "pre_tokenizer": nil, "post_processor": nil,
		"normalizer": object{"type": "Sequence", "normalizers": []any{object{"type": "Prepend", "prepend": "▁"},
			replace(" ", "▁")}},
		"decoder": object{"type": "Sequence", "decoders": []any{replace("▁", " "), object{"type": "ByteFallback"},
			object{"type": "Fuse"},
			object{"type": "Strip", "content": " ", "start": 1, "stop": 0}}},
		"added_tokens": []any{
			object{"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
				"special": true},
			object{"id": 261, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
				"special": true},
		},
		"model": object{"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": true,
			"byte_fallback": true, "ignore_merges": false, "vocab": vocab, "merges": []any{"▁ a"}},
	}
}

// TestByteFallbackDecoding checks the guarantees of byte fallback for a renderer, and their limits.
func TestByteFallbackDecoding(t *testing.T) {
	tokens, err := Read(encodeJSON(t, sentencePiece()))
	if err != nil {
		t.Fatal(err)
	}
	bytesIDs := func(text string) []int32 {
		ids := bytesOf(text)
		for i := range ids {
			ids[i] += 5
		}
		return ids
	}
	if diff := cmp.Diff(append([]int32{3, 1}, bytesIDs("日")...), tokens.Encode("a 日")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	cases := map[string]struct {
		ids  []int32
		want string
	}{
		"a whole character":                    {append([]int32{3}, bytesIDs("日")...), "a日"},
		"a cut character is one for each byte": {append([]int32{3}, bytesIDs("\xe6\x97")...), "a\ufffd\ufffd"},
		"a row that is cut is lost as a whole": {bytesIDs("ab日\xe6"), strings.Repeat("\ufffd", 6)},
		"the first space is left out":          {[]int32{3, 3}, "a a"},
		"also where a list is cut":             {[]int32{3}, "a"},
		"a special token stands by its name":   {[]int32{3, 261}, "a</s>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := tokens.Decode(tc.ids); err != nil || got != tc.want {
				t.Errorf("Decode = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestNormalizedAddedToken checks that a token that is matched in normalised text is decoded to its normalised text, as
// in the reference.
func TestNormalizedAddedToken(t *testing.T) {
	file := sentencePiece()
	file["normalizer"] = object{"type": "Lowercase"}
	file["added_tokens"] = append(file["added_tokens"].([]any), object{"id": 262, "content": "<A>", "normalized": true,
		"special": true})
	tokens, err := Read(encodeJSON(t, file))
	if err != nil {
		t.Fatal(err)
	}
	ids := tokens.AppendEncode(nil, "a<a>", Specials)
	if diff := cmp.Diff([]int32{2, 262}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if got, err := tokens.Decode(ids); err != nil || got != "a<a>" {
		t.Errorf("Decode = %q, %v, want a<a>", got, err)
	}
}

// TestTextIsNoSpecialToken checks that text that spells a special token is text, even if the vocabulary has the token
// and a whole piece wins.
func TestTextIsNoSpecialToken(t *testing.T) {
	file := sentencePiece()
	file["normalizer"] = nil
	vocab := file["model"].(object)["vocab"].(object)
	file["model"].(object)["ignore_merges"] = true
	file["model"].(object)["merges"] = []any{"▁ a", "a é"}
	vocab["</s>"], vocab["aé"], vocab["日"] = 261, 262, 263
	list := file["added_tokens"].([]any)
	for content, id := range map[string]int{"aé": 262, "日": 263} {
		list = append(list, object{"id": id, "content": content, "special": true})
	}
	file["added_tokens"] = list
	tokens, err := Read(encodeJSON(t, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"</s>", "aé", "日"} {
		for _, match := range []Match{Literal, Plain} {
			ids := tokens.AppendEncode(nil, text, match)
			if slices.ContainsFunc(ids, tokens.(*General).IsSpecial) {
				t.Errorf("%q becomes %d, which has a special token", text, ids)
			}
		}
		if ids := tokens.AppendEncode(nil, text, Specials); len(ids) != 1 {
			t.Errorf("%q becomes %d where special tokens are recognised, want one", text, ids)
		}
	}
}

// TestReadErrors checks that Read names the unsupported field and the repair.
func TestReadErrors(t *testing.T) {
	set := func(field string, value any) func(object) { return func(file object) { file[field] = value } }
	model := func(field string, value any) func(object) {
		return func(file object) { file["model"].(object)[field] = value }
	}
	pre := func(step object) func(object) { return set("pre_tokenizer", step) }
	split := func(change object) func(object) {
		step := object{"type": "Split", "pattern": object{"Regex": "a"}, "behavior": "Isolated", "invert": false}
		maps.Copy(step, change)
		return pre(step)
	}
	meta := func(change object) func(object) {
		step := object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}
		maps.Copy(step, change)
		return pre(step)
	}
	added := func(field string, value any) func(object) {
		return func(file object) { file["added_tokens"].([]any)[1].(object)[field] = value }
	}
	several := func(list string, steps ...any) object { return object{"type": "Sequence", list: steps} }
	level := object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}
	double := object{"type": "Replace", "pattern": object{"String": "a"}, "content": "aa"}
	first := object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}
	cases := map[string]struct {
		damage      func(object)
		field, says string
	}{
		"Unigram": {set("model", object{"type": "Unigram", "unk_id": 0, "vocab": []any{}}), "model.type",
			"Unigram is not supported, only BPE is: choose"},
		"WordPiece":     {model("type", "WordPiece"), "model.type", "WordPiece is not supported"},
		"WordLevel":     {model("type", "WordLevel"), "model.type", "WordLevel is not supported"},
		"another model": {model("type", "Markov"), "model.type", `"Markov" is not known`},
		"a prefix of parts of words": {model("continuing_subword_prefix", "##"), "model.continuing_subword_prefix",
			"not known"},
		"a suffix of words":           {model("end_of_word_suffix", "</w>"), "model.end_of_word_suffix", "not known"},
		"an unknown token of nobody":  {model("unk_token", "<none>"), "model.vocab", "<none>"},
		"an unknown token of numbers": {model("unk_token", 5), "model.unk_token", "cannot unmarshal"},
		"two tokens of one id": {func(f object) { f["model"].(object)["vocab"].(object)["zz"] = 2 },
			`model.vocab["zz"]`, `id 2 is also the id of "a"`},
		"a merge of nobody": {model("merges", []any{"a a"}), "model.merges[0]", `no "aa"`},
		"a merge of three":  {model("merges", []any{"▁ a a"}), "model.merges[0]", "not two tokens"},
		"a precompiled normalizer": {set("normalizer", object{"type": "Precompiled", "precompiled_charsmap": ""}),
			"normalizer", "Precompiled"},
		"a normalizer of Bert": {set("normalizer", several("normalizers", object{"type": "NFC"},
			object{"type": "BertNormalizer"})), "normalizer.normalizers[1]", "BertNormalizer"},
		"steps in steps in steps": {set("normalizer", nestedSteps(12)), "normalizer", "8 levels"},
		"texts that double": {set("normalizer", several("normalizers", double, double, double, double, double,
			double, double, double, double)), "normalizer", "512 times as long"},
		"decoders that double": {set("decoder", several("decoders", slices.Repeat([]any{double}, 9)...)), "decoder",
			"512 times as long"},
		"a long prefix": {set("normalizer", object{"type": "Prepend", "prepend": strings.Repeat("a", 65)}),
			"normalizer.prepend", "64 bytes"},
		"a Replace of nothing": {set("normalizer", object{"type": "Replace", "pattern": object{}, "content": ""}),
			"normalizer.pattern", "neither"},
		"a Replace without content": {set("normalizer", object{"type": "Replace", "pattern": object{"String": "a"}}),
			"normalizer.content", "missing"},
		"a pattern with a reference": {split(object{"pattern": object{"Regex": `(a)\1`}}), "pre_tokenizer.pattern.Regex",
			`compiling pattern "(a)\\1": at byte 3: \1 is not supported`},
		"another behavior": {split(object{"behavior": "Doubled"}), "pre_tokenizer.behavior", `"Doubled"`},
		"a Split without invert": {pre(object{"type": "Split", "pattern": object{"Regex": "a"}, "behavior": "Isolated"}),
			"pre_tokenizer.invert", "missing"},
		"scripts": {pre(object{"type": "UnicodeScripts"}), "pre_tokenizer", "UnicodeScripts"},
		"bytes of bytes": {pre(several("pretokenizers", level, level)), "pre_tokenizer.pretokenizers[1]",
			"twice"},
		"two Metaspaces": {pre(several("pretokenizers", first, first)), "pre_tokenizer.pretokenizers[1]",
			"twice"},
		"a replacement of two": {meta(object{"replacement": "▁▁"}), "pre_tokenizer.replacement", "not one character"},
		"another scheme":       {meta(object{"prepend_scheme": "last"}), "pre_tokenizer.prepend_scheme", `"last"`},
		"schemes that contradict": {meta(object{"add_prefix_space": false}), "pre_tokenizer.add_prefix_space",
			"contradicts"},
		"a first Metaspace second": {pre(several("pretokenizers", object{"type": "Digits", "individual_digits": true},
			first)), "pre_tokenizer", "first step only"},
		"a first Metaspace and Strip": {func(f object) {
			pre(first)(f)
			set("normalizer", object{"type": "StripAccents"})(f)
		}, "normalizer", "remove the start"},
		"an empty chunk": {pre(object{"type": "FixedLength", "length": 0}), "pre_tokenizer.length", "less than 1"},
		"many steps": {pre(several("pretokenizers", slices.Repeat([]any{object{"type": "Whitespace"}},
			33)...)), "pre_tokenizer.pretokenizers[32]", "32 steps"},
		"no decoder":       {set("decoder", nil), "decoder", "a space between"},
		"a decoder of CTC": {set("decoder", object{"type": "CTC"}), "decoder", "CTC"},
		"another post-processor": {set("post_processor", object{"type": "BertProcessing"}), "post_processor",
			"BertProcessing"},
		"an added token of nothing": {added("content", ""), "added_tokens[1].content", "empty"},
		"an added token twice":      {added("content", "<unk>"), "added_tokens[1].content", "twice"},
		"an added token's wrong id": {added("id", 400), "added_tokens[1].id", "261 is the next"},
		"an added token's other id": {added("content", "é"), "added_tokens[1].id", "4 in the vocabulary"},
		"an added token that vanishes": {func(f object) {
			set("normalizer", object{"type": "Strip", "strip_left": true, "strip_right": true})(f)
			added("content", " ")(f)
			added("normalized", true)(f)
		}, "added_tokens[1].content", "nothing after normalization"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := sentencePiece()
			tc.damage(file)
			_, err := Read(encodeJSON(t, file))
			var e *FieldError
			if !errors.As(err, &e) {
				t.Fatalf("Read: %v, want a *FieldError", err)
			}
			if e.Field != tc.field || !strings.Contains(e.Problem, tc.says) {
				t.Errorf("field %s: %s\nwant %s: … %s …", e.Field, e.Problem, tc.field, tc.says)
			}
		})
	}
}

// nestedSteps returns a normalizer within depth Sequences.
func nestedSteps(depth int) object {
	step := object{"type": "NFC"}
	for range depth {
		step = object{"type": "Sequence", "normalizers": []any{step}}
	}
	return step
}

// FuzzRead damages a file. Read returns a tokenizer that encodes and decodes any text, or a *FieldError, and never
// panics.
func FuzzRead(f *testing.F) {
	file := encodeJSON(f, sentencePiece())
	f.Add(uint16(0), uint16(0), []byte(nil), "a é 日 </s>")
	for _, step := range []string{
		`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?<!a)\\s+(?=\\S)|(?i:k)"},"behavior":"MergedWithNext","invert":true}`,
		`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Metaspace","replacement":"▁"},{"type":"Digits","individual_digits":false}]}`,
		`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"FixedLength","length":2},{"type":"Punctuation"},{"type":"Whitespace"}]}`,
	} {
		at := strings.Index(string(file), `"pre_tokenizer":null`)
		f.Add(uint16(at), uint16(len(`"pre_tokenizer":null`)), []byte(step), "It's 12 日a\u0301 ▁▁ x")
	}
	f.Fuzz(func(t *testing.T, at, cut uint16, insert []byte, text string) {
		start := min(int(at), len(file))
		end := min(start+int(cut), len(file))
		tokens, err := Read(slices.Concat(file[:start], insert, file[end:]))
		var e *FieldError
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatalf("%v is not a *FieldError", err)
			}
			return
		}
		for _, match := range []Match{Literal, Specials, Plain} {
			got, err := tokens.Decode(tokens.AppendEncode(nil, text, match))
			if err != nil || !utf8.ValidString(got) {
				t.Errorf("%q becomes %q, %v", text, got, err)
			}
		}
	})
}

// FuzzGeneral encodes any text with each kind of tokenizer. The ids of Gemma's kind decode to the whole text.
func FuzzGeneral(f *testing.F) {
	all := map[string]*General{}
	for _, name := range generalFiles(f) {
		all[filepath.Base(name)], _ = generalFile(f, name)
	}
	f.Add("It's 2026, 日本語 e\u0301\u0327 \r\n\r\n  <s> <left> word \xe2\x82")
	f.Fuzz(func(t *testing.T, text string) {
		for name, tokens := range all {
			for _, match := range []Match{Literal, Specials, Plain} {
				ids := tokens.AppendEncode(nil, text, match)
				got, err := tokens.Decode(ids)
				if err != nil || !utf8.ValidString(got) {
					t.Errorf("%s: %q becomes %q, %v", name, text, got, err)
				}
				whole := lossy([]byte(text))
				if name == "gemma.json.gz" && match == Plain && got != strings.ReplaceAll(whole, "▁", " ") {
					t.Errorf("%s: %q becomes %q", name, text, got)
				}
			}
		}
	})
}

// TestGeneralIsLikePrograms checks that the general tokenizer gives the same ids as the programs, for families that
// have one.
func TestGeneralIsLikePrograms(t *testing.T) {
	for _, folder := range []string{"deepseek_v3_1", "gpt_oss", "nemotron3", "qwen2_5", "qwen3", "qwen3_5"} {
		t.Run(folder, func(t *testing.T) {
			data, err := gunzip(filepath.Join(golden+folder, "tokenizer.json.gz"))
			if err != nil {
				t.Fatal(err)
			}
			tokens, err := parseGeneral(data)
			if err != nil {
				t.Fatal(err)
			}
			program := load(t, golden+folder)
			texts, wrong := 0, 0
			each(t, filepath.Join(golden+folder, "golden.jsonl.gz"), func(v encodeVector) {
				texts++
				for _, match := range []Match{Specials, Literal, Plain} {
					want, got := program.AppendEncode(nil, v.Text, match), tokens.AppendEncode(nil, v.Text, match)
					back, err := tokens.Decode(want)
					text, _ := program.Decode(want)
					if slices.Equal(want, got) && err == nil && back == text {
						continue
					}
					if wrong++; wrong <= 5 {
						t.Errorf("%q in way %d (-program +general):\n%s%s", v.Text, match, cmp.Diff(want, got), cmp.Diff(text, back))
					}
				}
			})
			if wrong > 0 || texts == 0 {
				t.Errorf("%d of %d texts in three ways are wrong", wrong, texts)
			}
		})
	}
}

func TestGeneralInParallel(t *testing.T) {
	names := generalFiles(t)
	tokens, v := generalFile(t, names[0])
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for _, want := range v.Texts {
				if got := tokens.AppendEncode(nil, want.Text, Specials); !slices.Equal(got, want.IDs) {
					t.Errorf("several encode at once, and one gets other ids of %q: got %d, want %d", want.Text, got, want.IDs)
				}
			}
		})
	}
	wait.Wait()
}

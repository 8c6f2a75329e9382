// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// object is a JSON object.
type object = map[string]any

// small returns a tokenizer.json with all bytes, "he", "ll", "hell", "hello" and two added tokens.
func small() object {
	vocab := object{}
	for char, b := range alphabet {
		if b != 0 {
			vocab[string(rune(char))] = int(b) - 1
		}
	}
	for i, token := range []string{"he", "ll", "hell", "hello"} {
		vocab[token] = 256 + i
	}
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "post_processor": nil,
		"added_tokens": []any{
			object{"id": 260, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
				"special": true},
			object{"id": 261, "content": "<think>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
				"special": false},
		},
		"pre_tokenizer": byteLevel, "decoder": byteLevel,
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "",
			"end_of_word_suffix": "", "fuse_unk": false,
			"byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []any{"h e", []any{"l", "l"}, "he ll",
				"hell o"}},
	}
}

func encodeJSON(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParse(t *testing.T) {
	tokens, err := Parse(encodeJSON(t, small()))
	if err != nil {
		t.Fatal(err)
	}
	text := "hello hell<|end|><think>"
	specials := map[Match][]int32{
		Specials: {259, 32, 258, 260, 261},
		Literal:  append(append([]int32{259, 32, 258}, bytesOf("<|end|>")...), 261),
		Plain:    append([]int32{259, 32, 258}, append(bytesOf("<|end|>"), bytesOf("<think>")...)...),
	}
	for match, want := range specials {
		if diff := cmp.Diff(want, tokens.AppendEncode(nil, text, match)); diff != "" {
			t.Errorf("ids in way %d (-want +got):\n%s", match, diff)
		}
	}
	if got, err := tokens.Decode(specials[Specials]); err != nil || got != text {
		t.Errorf("Decode = %q, %v, want %q", got, err, text)
	}
	if id, ok := tokens.Special("<think>"); !ok || id != 261 || tokens.IsSpecial(261) || !tokens.IsSpecial(260) {
		t.Errorf("<think> is %d, %v and special %v, <|end|> is %v", id, ok, tokens.IsSpecial(261), tokens.IsSpecial(260))
	}
}

func bytesOf(text string) []int32 {
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids
}

// TestAddedTokensOfAVocabularyWithGaps checks that added tokens are numbered after the count of the vocabulary,
// whatever its highest id is, as in the reference.
func TestAddedTokensOfAVocabularyWithGaps(t *testing.T) {
	file := small()
	file["model"].(object)["vocab"].(object)["<new>"] = 300
	list := file["added_tokens"].([]any)
	list[0].(object)["id"], list[0].(object)["content"] = 300, "<new>"
	list[1].(object)["id"] = 261
	tokens, err := Parse(encodeJSON(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{300, 261}, tokens.AppendEncode(nil, "<new><think>", Specials)); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if _, err := tokens.Decode([]int32{299}); err == nil {
		t.Error("an id in the gap is decoded")
	}
}

func TestTokensThatMergesDoNotReach(t *testing.T) {
	file := small()
	model := file["model"].(object)
	model["merges"] = []any{"h e", "l l"} // "hell" and "hello" are never merged.
	want := map[bool][]int32{false: {256, 257, 'o'}, true: {259}}
	for whole, ids := range want {
		model["ignore_merges"] = whole
		tokens, err := Parse(encodeJSON(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // The second time, the result is cached.
			if diff := cmp.Diff(ids, tokens.Encode("hello")); diff != "" {
				t.Errorf("ignore_merges %v (-want +got):\n%s", whole, diff)
			}
		}
	}
}

// TestParseErrors checks that Parse refuses a file that is damaged or has something unknown, and names the field.
func TestParseErrors(t *testing.T) {
	model := func(field string, value any) func(object) {
		return func(file object) { file["model"].(object)[field] = value }
	}
	vocab := func(token string, id any) func(object) {
		return func(file object) { file["model"].(object)["vocab"].(object)[token] = id }
	}
	merge := func(value any) func(object) { return model("merges", []any{"h e", value}) }
	added := func(field string, value any) func(object) {
		return func(file object) { file["added_tokens"].([]any)[1].(object)[field] = value }
	}
	level := object{"type": "ByteLevel", "use_regex": false}
	pre := func(steps ...any) func(object) {
		return func(file object) { file["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": steps} }
	}
	splitBy := func(changes object) object {
		step := object{"type": "Split", "pattern": object{"Regex": `\p{N}{1,3}`}, "behavior": "Isolated", "invert": false}
		maps.Copy(step, changes)
		return step
	}
	field := func(name string, value any) func(object) { return func(file object) { file[name] = value } }
	cases := map[string]struct {
		damage      func(object)
		field, says string
	}{
		"another version":        {field("version", "2.0"), "version", `"2.0" is not known`},
		"truncation":             {field("truncation", object{"max_length": 512}), "truncation", "not known"},
		"padding":                {field("padding", object{}), "padding", "not known"},
		"a field of another age": {field("surprise", 1), "surprise", "not known"},
		"another normalizer":     {field("normalizer", object{"type": "NFKC"}), "normalizer", "NFKC"},
		"one among normalizers": {field("normalizer",
			object{"type": "Sequence", "normalizers": []any{object{"type": "NFC"}, object{"type": "Lowercase"}}}),
			"normalizer.normalizers[1]", "Lowercase"},
		"no pre-tokenizer": {field("pre_tokenizer", nil), "pre_tokenizer", "ByteLevel is not its last step"},
		"another pre-tokenizer": {pre(object{"type": "Metaspace"}, level), "pre_tokenizer.pretokenizers[0]",
			"Metaspace"},
		"a pattern that is not known": {pre(splitBy(nil), level), "pre_tokenizer", `\\p{N}{1,3}`},
		"a pattern that is a string": {pre(splitBy(object{"pattern": object{"String": " "}}), level),
			"pre_tokenizer.pretokenizers[0]", "String"},
		"pieces that are removed": {pre(splitBy(object{"behavior": "Removed"}), level),
			"pre_tokenizer.pretokenizers[0].behavior", "Removed"},
		"a pattern turned round": {pre(splitBy(object{"invert": true}), level), "pre_tokenizer.pretokenizers[0].invert",
			"true"},
		"a step after the bytes": {pre(level, splitBy(nil)), "pre_tokenizer.pretokenizers[1]", "after ByteLevel"},
		"a space that is added": {field("pre_tokenizer", object{"type": "ByteLevel", "add_prefix_space": true}),
			"pre_tokenizer.add_prefix_space", "true"},
		"another post-processor": {field("post_processor", object{"type": "BertProcessing"}), "post_processor",
			"BertProcessing"},
		"no decoder":               {field("decoder", nil), "decoder", "no decoder"},
		"another decoder":          {field("decoder", object{"type": "Metaspace"}), "decoder", "Metaspace"},
		"no model":                 {func(file object) { delete(file, "model") }, "model", "missing"},
		"a model of words":         {model("type", "WordPiece"), "model.type", "WordPiece"},
		"dropout":                  {model("dropout", 0.1), "model.dropout", "0.1"},
		"a suffix of words":        {model("end_of_word_suffix", "</w>"), "model.end_of_word_suffix", "not known"},
		"a model with more fields": {model("cache_capacity", 5), "model.cache_capacity", "not known"},
		"no vocabulary":            {model("vocab", nil), "model.vocab", "want {"},
		"no merges": {func(file object) { delete(file["model"].(object), "merges") }, "model.merges",
			"missing"},
		"a byte without a token": {func(file object) { delete(file["model"].(object)["vocab"].(object), "Ġ") },
			"model.vocab", "0x20"},
		"an id that is text":          {vocab("Ġa", "7"), `model.vocab["Ġa"]`, "want a whole number"},
		"an id that is negative":      {vocab("Ġa", -7), `model.vocab["Ġa"]`, "want a whole number"},
		"an id that is a fraction":    {vocab("Ġa", 7.5), `model.vocab["Ġa"]`, "want a whole number"},
		"an id that is too high":      {vocab("Ġa", 1<<20), `model.vocab["Ġa"]`, "beyond"},
		"an id that is another's":     {vocab("zz", 258), `model.vocab["zz"]`, "id 258"},
		"a token of nothing":          {vocab("", 300), `model.vocab[""]`, "empty"},
		"a merge of an unknown":       {merge("h xyz"), "model.merges[1]", `no "xyz"`},
		"a merge into an unknown":     {merge("l o"), "model.merges[1]", `no "lo"`},
		"a merge of one":              {merge("h"), "model.merges[1]", "not two tokens"},
		"a merge of three":            {merge([]any{"h", "e", "l"}), "model.merges[1]", "3 tokens"},
		"a merge of another alphabet": {merge([]any{"日", "e"}), "model.merges[1][0]", "alphabet"},
		"a merge that is a number":    {merge(5), "model.merges[1]", "want a string"},
		"a merge that is there twice": {merge("h e"), "model.merges[1]", "merged before"},
		"an added token of nothing":   {added("content", ""), "added_tokens[1].content", "empty"},
		"an added token twice":        {added("content", "<|end|>"), "added_tokens[1].content", "twice"},
		"an added token of words":     {added("single_word", true), "added_tokens[1]", "single_word"},
		"an added token's wrong id":   {added("id", 300), "added_tokens[1].id", "261 is the next"},
		"an added token's other id":   {added("content", "hell"), "added_tokens[1].id", "258 in the vocabulary"},
		"an added token with more":    {added("color", "red"), "added_tokens[1]", "color"},
		"an added token's other form": {func(file object) {
			file["normalizer"] = object{"type": "NFC"}
			added("content", "e\u0301")(file)
			added("normalized", true)(file)
		}, "added_tokens[1].content", "not normalised"},
		"added tokens that are one": {field("added_tokens", object{}), "added_tokens", "not a list"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := small()
			tc.damage(file)
			_, err := Parse(encodeJSON(t, file))
			var e *FieldError
			if !errors.As(err, &e) {
				t.Fatalf("Parse: %v, want a *FieldError", err)
			}
			if e.Field != tc.field || !strings.Contains(e.Problem, tc.says) {
				t.Errorf("field %s: %s\nwant %s: … %s …", e.Field, e.Problem, tc.field, tc.says)
			}
		})
	}
}

func TestParseMalformedJSON(t *testing.T) {
	file := string(encodeJSON(t, small()))
	cases := map[string]struct{ text, field, says string }{
		"nothing":             {"", "", "ends where { should be"},
		"half of it":          {file[:len(file)/2], "model", "ends where"},
		"more than it":        {file + "{}", "", "want the end of the file"},
		"another encoding":    {"\xff\xfe{", "", "not UTF-8"},
		"no object":           {"[]", "", "want {"},
		"a field twice":       {`{"version":"1.0","version":"1.0"}`, "version", "twice"},
		"an escape of nobody": {strings.Replace(file, `"hello"`, `"hel\qo"`, 1), "model.vocab", "want an escape"},
		"half a surrogate":    {strings.Replace(file, `"hello"`, `"\ud83d"`, 1), "model.vocab", "half of a surrogate pair"},
		"a line in a string": {strings.Replace(file, `"hello"`, "\"hel\nlo\"", 1), "model.vocab",
			"want a character of a string"},
		"a comma too many": {strings.Replace(file, `"merges":[`, `"merges":[,`, 1), "model.merges[0]", "want a string"},
		"a colon too few":  {strings.Replace(file, `"hello":`, `"hello" `, 1), "model.vocab", "want :"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text))
			var e *FieldError
			if !errors.As(err, &e) || e.Field != tc.field || !strings.Contains(e.Problem, tc.says) {
				t.Errorf("Parse: %v, want %s: … %s …", err, tc.field, tc.says)
			}
		})
	}
}

// TestParseEscapes checks that strings may be written with escapes.
func TestParseEscapes(t *testing.T) {
	text := strings.NewReplacer(`"hello"`, `"\u0068ello"`, `"<think>"`, `"\u003cthink\u003e"`, `"/"`,
		`"\/"`).Replace(string(encodeJSON(t, small())))
	tokens, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{259, '/', 261}, tokens.Encode("hello/<think>")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// FuzzParse damages a tokenizer file. Parse reads it or refuses it with a *FieldError, and never panics.
func FuzzParse(f *testing.F) {
	file := encodeJSON(f, small())
	f.Add(uint16(0), uint16(0), []byte(nil))
	f.Add(uint16(100), uint16(7), []byte(`"x":[`))
	f.Add(uint16(0), uint16(len(file)),
		[]byte(`{"model":{"vocab":{"a":1,"b":1048576},"merges":["a b"]},"added_tokens":[{"id":1}]}`))
	f.Add(uint16(0), uint16(len(file)),
		[]byte(`{"version":"1.0","normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"}]}}`))
	f.Fuzz(func(t *testing.T, at, cut uint16, insert []byte) {
		start := min(int(at), len(file))
		end := min(start+int(cut), len(file))
		damaged := slices.Concat(file[:start], insert, file[end:])
		tokens, err := Parse(damaged)
		var e *FieldError
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v is not a *FieldError", err)
		}
		if err != nil {
			return
		}
		text := "hello, wörld <|end|> \n\n 12345"
		if got, err := tokens.Decode(tokens.AppendEncode(nil, text, Plain)); err != nil || got != text &&
			tokens.normalize == nil {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	})
}

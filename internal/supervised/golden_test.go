// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// conversation is a line of testdata/conversations.jsonl.
type conversation struct {
	Name     string           `json:"name"`
	Messages []map[string]any `json:"messages"`
	Tools    json.RawMessage  `json:"tools,omitempty"`
	// Trained has the indexes of the messages that have weight in mode Marked.
	Trained []int `json:"trained"`
}

// record is a line of testdata/cookbook.jsonl.gz or cookbook-next.jsonl.gz, which test/supervised/records.py writes
// with tinker-cookbook.
type record struct {
	Renderer string                          `json:"renderer"`
	Family   string                          `json:"family"`
	Case     string                          `json:"case"`
	IDs      []int32                         `json:"ids"`
	Weights  map[supervised.TrainOn][][2]int `json:"weights"`
	Errors   map[supervised.TrainOn]string   `json:"errors"`
}

// ends has the tokens that begin and end the texts of a family.
var ends = map[string]families.Options{
	"llama3":        {Begin: "<|begin_of_text|>", End: "<|eot_id|>"},
	"qwen3":         {End: "<|im_end|>"},
	"deepseek_v3_1": {Begin: "<｜begin▁of▁sentence｜>", End: "<｜end▁of▁sentence｜>"},
}

// literal lists the renderers of the reference that read names of special tokens within messages as text, as runs
// always do. The other renderers read them as tokens.
var literal = []string{"qwen3", "qwen3+keep_thinking", "qwen3_disable_thinking", "qwen3_instruct"}

// everyMode lists the values of TrainOn. Some formats have no records of the last one.
var everyMode = []supervised.TrainOn{
	supervised.LastAssistant, supervised.AllAssistant, supervised.All, supervised.Marked,
}

// TestExamplesOfEveryFamily compares tokens and weights of every renderer and mode with the records of tinker-cookbook.
func TestExamplesOfEveryFamily(t *testing.T) {
	conversations := conversations(t)
	compared := map[string]map[supervised.TrainOn]int{}
	for _, r := range records(t) {
		made := build(t, r.Renderer, r.Family)
		for _, mode := range everyMode {
			t.Run(r.Renderer+"/"+r.Case+"/"+string(mode), func(t *testing.T) {
				if compare(t, made, conversations[r.Case], r, mode) {
					if compared[r.Renderer] == nil {
						compared[r.Renderer] = map[supervised.TrainOn]int{}
					}
					compared[r.Renderer][mode]++
				}
			})
		}
	}
	for _, name := range families.Names() {
		if name == "role_colon_end" {
			continue // The reference does not have it.
		}
		for _, mode := range everyMode[:3] {
			if got, want := compared[name][mode], len(conversations)/2; got < want {
				t.Errorf("%d examples of %s in mode %s are compared, want at least %d", got, name, mode, want)
			}
		}
	}
}

// compare compares an example with its record and reports whether there was one to compare.
func compare(t *testing.T, made renderer.Renderer, c conversation, r record, mode supervised.TrainOn) bool {
	t.Helper()
	b := supervised.Builder{Renderer: made, TrainOn: mode}
	row, err := supervised.ReadRow(c.row(t, mode))
	if err != nil {
		t.Fatalf("ReadRow: %v", err)
	}
	ids, weights, err := b.Weigh(row)
	refused := r.Errors[mode]
	for _, d := range differences {
		if d.holds(r, c, mode) {
			wantIDs, wantWeights := d.want(r, c, mode)
			if err != nil || !slices.Equal(ids, wantIDs) || !slices.Equal(weights, wantWeights) {
				t.Errorf("%s: got ids %v and weights %v, %v, want %v and %v",
					d.reason, ids, runs(weights), err, wantIDs, runs(wantWeights))
			}
			return false
		}
	}
	if refused != "" || err != nil {
		var unusable *supervised.Unusable
		if refused == "" || !errors.As(err, &unusable) || unusable.Reason != supervised.NotRendered {
			t.Errorf("Weigh: %v, want the reference's refusal: %q", err, refused)
		}
		return false
	}
	if !slices.Equal(ids, r.IDs) {
		t.Errorf("ids (-want +got):\n%s", cmp.Diff(r.IDs, ids))
	}
	if want := expand(r.Weights[mode]); !slices.Equal(weights, want) {
		t.Errorf("weights (-want +got):\n%s", cmp.Diff(r.Weights[mode], runs(weights)))
	}
	return true
}

// difference is a deliberate difference from tinker-cookbook.
type difference struct {
	reason string
	holds  func(r record, c conversation, mode supervised.TrainOn) bool
	// want returns the expected ids and weights.
	want func(r record, c conversation, mode supervised.TrainOn) (ids []int32, weights []float32)
}

var differences = []difference{
	{
		reason: "role_colon of the reference writes <UNUSED> after a last message that is not the assistant's; " +
			"here nothing follows",
		holds: func(r record, c conversation, _ supervised.TrainOn) bool {
			return r.Renderer == "role_colon" && r.IDs != nil && c.Messages[len(c.Messages)-1]["role"] != "assistant"
		},
		want: func(r record, _ conversation, mode supervised.TrainOn) ([]int32, []float32) {
			const unused = len("<UNUSED>") // in bytes, which are the tokens of the records
			return r.IDs[:len(r.IDs)-unused], expand(r.Weights[mode])[:len(r.IDs)-unused]
		},
	},
	{
		reason: "mode CUSTOMIZED of the reference fails for formats with system messages of their own, which have no mark; " +
			"here they have no weight",
		holds: func(r record, _ conversation, mode supervised.TrainOn) bool {
			return mode == supervised.Marked && strings.HasPrefix(r.Errors[mode], "AssertionError")
		},
		want: func(r record, _ conversation, mode supervised.TrainOn) ([]int32, []float32) {
			return r.IDs, expand(r.Weights[mode])
		},
	},
}

// row returns the conversation as a row of data.
func (c conversation) row(t *testing.T, mode supervised.TrainOn) []byte {
	t.Helper()
	row := map[string]any{"messages": c.Messages}
	if c.Tools != nil {
		row["tools"] = c.Tools
	}
	if mode == supervised.Marked {
		var marked []map[string]any
		for i, m := range c.Messages {
			copied := map[string]any{"trainable": slices.Contains(c.Trained, i)}
			for name, value := range m {
				copied[name] = value
			}
			marked = append(marked, copied)
		}
		row["messages"] = marked
	}
	data, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func expand(runs [][2]int) []float32 {
	var weights []float32
	for _, run := range runs {
		weights = append(weights, slices.Repeat([]float32{float32(run[0])}, run[1])...)
	}
	return weights
}

func runs(weights []float32) [][2]int {
	var out [][2]int
	for _, w := range weights {
		if n := len(out); n > 0 && out[n-1][0] == int(w) {
			out[n-1][1]++
		} else {
			out = append(out, [2]int{int(w), 1})
		}
	}
	return out
}

const rendererData = "../renderer/families/testdata"

var tokenizers = map[string]tokenizer.Tokenizer{}

// vocabulary returns the tokenizer of a family, cut down to the tokens in the recorded examples of its renderers.
func vocabulary(t testing.TB, family string) tokenizer.Tokenizer {
	t.Helper()
	if tokenizers[family] == nil {
		tokens, err := tokenizer.Parse(unzip(t, filepath.Join(rendererData, "tokenizers", family+".json.gz")))
		if err != nil {
			t.Fatal(err)
		}
		tokenizers[family] = tokens
	}
	return tokenizers[family]
}

func build(t testing.TB, name, family string) renderer.Renderer {
	t.Helper()
	options := ends[family]
	options.Date = "2026-11-21"
	if !slices.Contains(literal, name) {
		options.Match = tokenizer.Specials
	}
	made, err := families.New(name, vocabulary(t, family), options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func conversations(t testing.TB) map[string]conversation {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "conversations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]conversation{}
	for line := range bytes.Lines(data) {
		var c conversation
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		out[c.Name] = c
	}
	return out
}

func records(t testing.TB) []record {
	t.Helper()
	var out []record
	for _, file := range []string{"cookbook.jsonl.gz", "cookbook-next.jsonl.gz"} {
		for line := range bytes.Lines(unzip(t, filepath.Join("testdata", file))) {
			var r record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
	}
	return out
}

func unzip(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

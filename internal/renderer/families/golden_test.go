// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/chatjson"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// everything is the environment variable that names a directory with all records of the reference's renderers and the
// whole vocabularies. A share of the records is in testdata, with the part of each vocabulary that they need.
const everything = "TOKENIZERS_DIR"

// record is a line of the files of records.
type record struct {
	Kind   string `json:"kind"`
	Family string `json:"family"`
	Case   string `json:"case"`
	Error  string `json:"error"`

	// These fields describe the renderer.
	Name      string          `json:"name"`
	Stop      json.RawMessage `json:"stop"`
	Extension bool            `json:"extension"`
	BOS       []int32         `json:"bos"`

	// These fields describe a prompt or an example.
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	System   string          `json:"system"`
	Prefill  string          `json:"prefill"`
	IDs      []int32         `json:"ids"`
	Weights  [][2]int        `json:"weights"`

	// These fields describe a reply.
	Message     json.RawMessage `json:"message"`
	Termination string          `json:"termination"`
}

// familyOptions name the tokens that begin and end the texts of each family, as its tokenizer_config.json has them.
var familyOptions = map[string]families.Options{
	"llama3":        {Begin: "<|begin_of_text|>", End: "<|eot_id|>"},
	"qwen3":         {End: "<|im_end|>"},
	"deepseek_v3_1": {Begin: "<｜begin▁of▁sentence｜>", End: "<｜end▁of▁sentence｜>"},
}

// literal are the renderers of the reference that take names of special tokens within messages as text. The others take
// them as tokens, which the records need and a run never does.
var literal = []string{"qwen3", "qwen3+keep_thinking", "qwen3_disable_thinking", "qwen3_instruct"}

// goldenDate is the date that the records of gpt-oss have.
const goldenDate = "2026-11-21"

// aliases are renderers without a file of their own.
var aliases = map[string]string{
	"deepseekv3_disable_thinking": "deepseekv3", "kimi_k26": "kimi_k25",
	"kimi_k26_disable_thinking": "kimi_k25_disable_thinking",
}

func TestGolden(t *testing.T) {
	dir := os.Getenv(everything)
	for _, name := range families.Names() {
		if name == "role_colon_end" {
			continue // the simulator's own: see rolecolonend_test.go
		}
		file := name
		if alias, ok := aliases[name]; ok {
			file = alias
		}
		path := filepath.Join(dir, "renderers", file+".jsonl.gz")
		if dir == "" {
			path = filepath.Join("testdata", "renderers", file+".jsonl.gz")
		}
		t.Run(name, func(t *testing.T) {
			counts := map[string]int{}
			for family, records := range byFamily(t, path) {
				o := newOracle(t, dir, name, family)
				for _, r := range records {
					counts[r.Kind]++
					o.check(t, r)
				}
			}
			t.Logf("%s: %d prompts, %d examples, %d replies", path, counts["prompt"], counts["train"], counts["parse"])
			if counts["prompt"] == 0 || counts["train"] == 0 || counts["parse"] == 0 {
				t.Errorf("%s holds no records of some kind: %v", path, counts)
			}
		})
	}
}

func newOracle(t *testing.T, dir, name, family string) oracle {
	t.Helper()
	options := familyOptions[family]
	options.Date = goldenDate
	if !slices.Contains(literal, name) {
		options.Match = tokenizer.Specials
	}
	tokens := vocabulary(t, dir, family)
	r, err := families.New(name, tokens, options)
	if err != nil {
		t.Fatalf("New(%q) with the tokenizer of %s: %v", name, family, err)
	}
	return oracle{name: name, tokens: tokens, options: options, renderer: r}
}

// loaded caches tokenizers by family and directory.
var loaded = map[[2]string]tokenizer.Tokenizer{}

func vocabulary(t *testing.T, dir, family string) tokenizer.Tokenizer {
	t.Helper()
	key := [2]string{dir, family}
	if loaded[key] == nil {
		loaded[key] = load(t, dir, family)
	}
	return loaded[key]
}

func load(t *testing.T, dir, family string) tokenizer.Tokenizer {
	t.Helper()
	if dir == "" {
		tokens, err := tokenizer.Parse(unzip(t, filepath.Join("testdata", "tokenizers", family+".json.gz")))
		if err != nil {
			t.Fatalf("the cut-down tokenizer of %s: %v", family, err)
		}
		return tokens
	}
	if family == "kimi_k2" {
		tokens, err := tokenizer.ParseTiktoken(family, unzip(t, filepath.Join(dir, family, "tiktoken.model.gz")), nil)
		if err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	tokens, err := tokenizer.Parse(unzip(t, filepath.Join(dir, family, "tokenizer.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(bufio.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func byFamily(t *testing.T, path string) map[string][]record {
	t.Helper()
	out := map[string][]record{}
	conversations := map[string]record{}
	for line := range strings.Lines(string(unzip(t, path))) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		// An example has the conversation of the prompt with the same name.
		switch r.Kind {
		case "prompt":
			conversations[r.Case] = r
		case "train":
			r.Messages = conversations[r.Case].Messages
		}
		out[r.Family] = append(out[r.Family], r)
	}
	return out
}

// oracle compares a renderer with records.
type oracle struct {
	name     string
	tokens   tokenizer.Tokenizer
	options  families.Options
	renderer renderer.Renderer
}

func (o oracle) check(t *testing.T, r record) {
	t.Helper()
	switch r.Kind {
	case "renderer":
		o.head(t, r)
	case "prompt":
		o.prompt(t, r)
	case "train":
		o.example(t, r)
	case "parse":
		o.reply(t, r)
	default:
		t.Fatalf("a record is of kind %q", r.Kind)
	}
}

func (o oracle) head(t *testing.T, r record) {
	t.Helper()
	want := renderer.Stop{}
	if json.Unmarshal(r.Stop, &want.Tokens) != nil {
		want.Tokens = nil
		if err := json.Unmarshal(r.Stop, &want.Strings); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, o.renderer.Stop()); diff != "" {
		t.Errorf("Stop (-want +got):\n%s", diff)
	}
	if _, rewrites := rewritesHistory[o.name]; r.Extension && rewrites {
		t.Error("the reference claims that turns extend each other, the renderer does not")
	}
}

func (o oracle) prompt(t *testing.T, r record) {
	t.Helper()
	got, err := o.renderer.Prompt(conversationOf(t, r))
	compare(t, r, err, r.IDs, got)
}

func (o oracle) example(t *testing.T, r record) {
	t.Helper()
	var weights []float32
	for _, run := range r.Weights {
		weights = append(weights, slices.Repeat([]float32{float32(run[0])}, run[1])...)
	}
	got, err := families.NewExample(o.name, o.tokens, o.options, conversationOf(t, r))
	compare(t, r, err, r.IDs, got.Tokens)
	if err == nil {
		compare(t, r, err, weights, got.Weights)
	}
}

// conversationOf reads a record. If there are tools, the system's text is a separate field.
func conversationOf(t *testing.T, r record) renderer.Conversation {
	t.Helper()
	fields := map[string]any{"messages": r.Messages, "prefill": r.Prefill}
	if r.Tools != nil {
		fields["tools"] = r.Tools
	}
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	c, err := chatjson.Read(data)
	if err != nil {
		t.Fatalf("%s: %v", r.Case, err)
	}
	if r.System != "" {
		c.Messages = slices.Insert(c.Messages, 0, chat.Message{Role: chat.RoleSystem, Content: r.System})
	}
	return c
}

func compare[T comparable](t *testing.T, r record, err error, want, got []T) {
	t.Helper()
	if (err != nil) != (r.Error != "") {
		t.Errorf("%s %s: error %v, want one: %q", r.Kind, r.Case, err, r.Error)
		return
	}
	if err == nil && !slices.Equal(want, got) {
		t.Errorf("%s %s (-want +got):\n%s", r.Kind, r.Case, cmp.Diff(want, got))
	}
}

// reply compares a parsed reply. If the reference fails because of a second stop, the reply is malformed here: an error
// would cost a run the whole group.
func (o oracle) reply(t *testing.T, r record) {
	t.Helper()
	got, err := o.renderer.Parse(r.IDs)
	if err != nil {
		t.Errorf("parse %s: %v", r.Case, err)
		return
	}
	if r.Error != "" {
		if got.Ending != renderer.Malformed || got.Problem == "" {
			t.Errorf("parse %s: ending %d, problem %q, want a malformed reply: %s", r.Case, got.Ending, got.Problem, r.Error)
		}
		return
	}
	if end := termination(got); end != r.Termination && (r.Termination != "eos" || got.Unparsed == nil) {
		t.Errorf("parse %s: %s, want %s", r.Case, end, r.Termination)
	}
	data, err := chatjson.Write(got)
	if err != nil {
		t.Fatal(err)
	}
	var written struct {
		Message  map[string]any `json:"message"`
		Unparsed []any          `json:"unparsed_tool_calls"`
	}
	if err := json.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}
	if written.Unparsed != nil {
		written.Message["unparsed_tool_calls"] = written.Unparsed
	}
	var want map[string]any
	if err := json.Unmarshal(r.Message, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutJSONErrors(want), withoutJSONErrors(written.Message)); diff != "" {
		t.Errorf("parse %s (-want +got):\n%s", r.Case, diff)
	}
}

// termination returns the reference's name of an ending. The reference ignores calls that cannot be read.
func termination(p renderer.Parsed) string {
	switch {
	case p.Ending == renderer.Ended:
		return "eos"
	case p.Ending == renderer.Stopped, p.Ending == renderer.Malformed && len(p.Unparsed) > 0:
		return "stop_sequence"
	default:
		return "malformed"
	}
}

// withoutJSONErrors removes the texts of JSON errors, which differ between parsers.
func withoutJSONErrors(message map[string]any) map[string]any {
	list, _ := message["unparsed_tool_calls"].([]any)
	for _, item := range list {
		call := item.(map[string]any)
		text, _ := call["error"].(string)
		if strings.HasPrefix(text, "Invalid JSON: ") {
			call["error"] = "Invalid JSON"
		}
		if isOfJSON := strings.Contains(text, " (char ") || strings.Contains(text, " JSON at byte "); isOfJSON {
			call["error"], _, _ = strings.Cut(text, ": ")
		}
	}
	return message
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// part returns a part of a family's vocabulary, as a tokenizer.json.
func part(t *testing.T, family string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "renderer", "families", "testdata", "tokenizers", family+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is the result of a call of the program.
type result struct {
	Code           int
	Stdout, Stderr string
}

func call(t *testing.T, variables map[string]string, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := cli.IO{
		Getenv: func(name string) string { return variables[name] }, Stdin: strings.NewReader(stdin), Stdout: &stdout,
		Stderr: &stderr, Now: time.Now,
	}
	code := Run(t.Context(), env, append([]string{"kubectl-tinker"}, args...))
	return result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

func TestAnswers(t *testing.T) {
	qwen := file(t, "tokenizer.json", part(t, "qwen3"))
	gptOss := file(t, "gpt-oss.json", part(t, "gpt_oss"))
	cases := map[string]struct {
		args        string
		stdin, want string
	}{
		"text becomes ids": {args: "tokens --tokenizer " + qwen, stdin: `{"text": "Hello!"}` + "\n\n" + `{"text": ""}`,
			want: `{"ids":[9707,0]}` + "\n" + `{"ids":[]}` + "\n"},
		"names of special tokens are text": {args: "tokens --tokenizer tinkersim/byte-136k", stdin: `{"text": "<|end|>"}`,
			want: `{"ids":[60,124,101,110,100,124,62]}` + "\n"},
		"with --special they are tokens": {args: "tokens --special --tokenizer " + qwen, stdin: `{"text": "<|im_end|>!"}`,
			want: `{"ids":[151645,0]}` + "\n"},
		"ids become text": {args: "tokens --decode --tokenizer " + qwen, stdin: `{"ids": [9707,0,151645,151667]}`,
			want: `{"text":"Hello!<|im_end|><think>"}` + "\n"},
		"a conversation becomes a prompt": {args: "render --renderer qwen3_disable_thinking --tokenizer " + qwen,
			stdin: `{"messages": [{"role": "user", "content": "Hello!"}]}`,
			want: `{"ids":[151644,872,198,9707,0,151645,198,151644,77091,198,151667,271,151668,271],"stop":{"tokens":[151645]},` +
				`"text":"<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",` +
				`"tokens":["<|im_start|>","user","\n","Hello","!","<|im_end|>","\n","<|im_start|>","assistant","\n","<think>","\n\n","</think>","\n\n"]}` + "\n"},
		"a part of a character shows": {args: "render --tokenizer tinkersim/byte-136k",
			stdin: `{"messages": [{"role": "user", "content": "é"}]}`,
			want: `{"ids":[85,115,101,114,58,32,195,169,10,10,65,115,115,105,115,116,97,110,116,58],"stop":{"tokens":[256]},"text":"User: é\n\nAssistant:",` +
				`"tokens":["U","s","e","r",":"," ","�","�","\n","\n","A","s","s","i","s","t","a","n","t",":"]}` + "\n"},
		"a string may stop a reply": {args: "render --renderer role_colon --end <|im_end|> --tokenizer " + qwen,
			stdin: `{"messages": []}`,
			want:  `{"ids":[71703,25],"stop":{"strings":["\n\nUser:"]},"text":"Assistant:","tokens":["Assistant",":"]}` + "\n"},
		"a reply becomes a message": {args: "render --parse --renderer qwen3 --tokenizer " + qwen,
			stdin: `{"ids": [151667,198,9707,198,151668,271,0,151645]}`,
			want:  `{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"Hello"},{"type":"text","text":"!"}]},"ending":"stopped"}` + "\n"},
		"a call that is invalid is named": {args: "render --parse --renderer qwen3 --tokenizer " + qwen,
			stdin: `{"ids": [151657,0,151658,151645]}`,
			want: `{"message":{"role":"assistant","content":[]},"ending":"malformed","problem":"a call of a tool cannot be read: Invalid JSON: reading JSON at byte 0: a value is expected",` +
				`"unparsed_tool_calls":[{"raw_text":"<tool_call>!</tool_call>","error":"Invalid JSON: reading JSON at byte 0: a value is expected"}]}` + "\n"},
		"a date is written into the prompt": {args: "render --renderer gpt_oss_low_reasoning --date 2026-11-21 --parse " +
			"--tokenizer " + gptOss, stdin: `{"ids": []}`,
			want: `{"message":{"role":"assistant","content":""},"ending":"truncated"}` + "\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, nil, tc.stdin, strings.Fields(tc.args)...)
			if diff := cmp.Diff(result{Stdout: tc.want}, got); diff != "" {
				t.Errorf("the program's answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	qwen := file(t, "tokenizer.json", part(t, "qwen3"))
	damaged := file(t, "damaged.json", []byte(`{"version": "1.0", "model": {"type": "WordPiece"}}`))
	cases := map[string]struct {
		args, stdin string
		code        int
		// answered is the number of lines that are answered before one is refused.
		answered int
		want     []string
	}{
		"no command": {code: cli.ExitUsage, want: []string{"Usage:"}},
		"an unknown command": {args: "token", code: cli.ExitUsage, want: []string{`there is no command "token"`,
			"tokens"}},
		"an unknown flag": {args: "tokens --tokeniser x", code: cli.ExitUsage,
			want: []string{"-tokeniser", "tokens --help"}},
		"an argument": {args: "tokens --tokenizer x input.jsonl", code: cli.ExitUsage,
			want: []string{"input.jsonl", "standard input"}},
		"no tokenizer": {args: "tokens", code: cli.ExitUsage, want: []string{"--tokenizer is required"}},
		"an unknown tokenizer": {args: "tokens --tokenizer nobody/nothing", code: cli.ExitFailure,
			want: []string{`"nobody/nothing"`, "no such file", "Qwen/Qwen3-8B"}},
		"a damaged tokenizer": {args: "tokens --tokenizer " + damaged, code: cli.ExitFailure,
			want: []string{"damaged.json", "model.type"}},
		"specials of ids": {args: "tokens --tokenizer x --decode --special", code: cli.ExitUsage,
			want: []string{"--special"}},
		"no renderer with a file": {args: "render --tokenizer " + qwen, code: cli.ExitUsage,
			want: []string{"--renderer is required", "qwen3_vl"}},
		"an unknown renderer": {args: "render --renderer qwen2 --tokenizer " + qwen, code: cli.ExitUsage,
			want: []string{`"qwen2"`, "qwen3"}},
		"another model's tokenizer": {args: "render --renderer llama3 --tokenizer " + qwen, code: cli.ExitUsage,
			want: []string{"<|begin_of_text|>"}},
		"gpt-oss without a date": {args: "render --renderer gpt_oss_low_reasoning --tokenizer " + file(t, "gpt-oss.json",
			part(t, "gpt_oss")),
			code: cli.ExitUsage, want: []string{"date", "--date"}},
		"a line that is not JSON": {args: "tokens --tokenizer " + qwen, stdin: `{"text": "a"}` + "\n" + `{"text": `,
			code: cli.ExitFailure, answered: 1, want: []string{"line 2:", `{"text": "..."}`}},
		"a line without text": {args: "tokens --tokenizer " + qwen, stdin: `{}`, code: cli.ExitFailure,
			want: []string{"line 1: field text is missing", "--decode"}},
		"a line of ids for text": {args: "tokens --tokenizer " + qwen, stdin: `{"ids": [1]}`, code: cli.ExitFailure,
			want: []string{"line 1:", `unknown field "ids"`}},
		"a line without ids": {args: "tokens --decode --tokenizer " + qwen, stdin: `{}`, code: cli.ExitFailure,
			want: []string{"line 1: field ids is missing"}},
		"an unknown id": {args: "tokens --decode --tokenizer " + qwen, stdin: `{"ids": [999999]}`,
			code: cli.ExitFailure, want: []string{"line 1: field ids:", "999999"}},
		"two values in a line": {args: "tokens --tokenizer " + qwen, stdin: `{"text": "a"} {"text": "b"}`,
			code: cli.ExitFailure, want: []string{"line 1:", "line of its own"}},
		"an unknown field": {args: "render --renderer qwen3 --tokenizer " + qwen,
			stdin: `{"messages": [{"role": "user", "contnt": "x"}]}`, code: cli.ExitFailure,
			want: []string{"line 1: messages[0]:", `"contnt"`, "content"}},
		"tools of a format without tools": {args: "render --tokenizer tinkersim/byte-136k",
			stdin: `{"messages": [], "tools": [{"name": "f"}]}`, code: cli.ExitFailure,
			want: []string{"line 1:", "tools"}},
		"an unknown id in a reply": {args: "render --parse --renderer qwen3 --tokenizer " + qwen, stdin: `{"ids": [-1]}`,
			code: cli.ExitFailure, want: []string{"line 1: field ids:", "-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, nil, tc.stdin, strings.Fields(tc.args)...)
			if got.Code != tc.code || strings.Count(got.Stdout, "\n") != tc.answered {
				t.Errorf("exit code %d after %q, want %d after %d answers", got.Code, got.Stdout, tc.code, tc.answered)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("%q does not say %q", got.Stderr, want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "help", "tokens --help", "render -h"} {
		if got := call(t, nil, "", strings.Fields(args)...); got.Code != 0 || got.Stderr != "" ||
			!strings.Contains(got.Stdout, "kubectl tinker") {
			t.Errorf("kubectl tinker %s = %+v, want help on the standard output alone", args, got)
		}
	}
	if got := call(t, nil, "", "version"); got.Code != 0 || got.Stdout == "" {
		t.Errorf("kubectl tinker version = %+v", got)
	}
}

// TestModelComesFromTheHub checks that a model's tokenizer comes from the hub, and its renderer from the table.
func TestModelComesFromTheHub(t *testing.T) {
	data := part(t, "qwen3_5")
	requests := 0
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.URL.Path != "/Qwen/Qwen3.5-4B/resolve/main/tokenizer.json" ||
			r.Header.Get("Authorization") != "Bearer hf_secret" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	defer hub.Close()
	variables := map[string]string{"HF_ENDPOINT": hub.URL, "HF_TOKEN": "hf_secret", "HOME": t.TempDir()}
	got := call(t, variables, `{"messages": []}`, "render", "--tokenizer", "Qwen/Qwen3.5-4B")
	if got.Code != 0 || !strings.Contains(got.Stdout, `"text":"<|im_start|>assistant\n<think>\n"`) {
		t.Fatalf("render of a model = %+v", got)
	}
	if requests != 1 {
		t.Errorf("%d requests were sent, want 1", requests)
	}
}

// TestModelOfAnotherDigestIsRefused checks that a tokenizer is refused if it is not the one that the model's publisher
// ships.
func TestModelOfAnotherDigestIsRefused(t *testing.T) {
	data := part(t, "qwen3")
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	defer hub.Close()
	got := call(t, map[string]string{"HF_ENDPOINT": hub.URL}, `{"text": "a"}`, "tokens", "--tokenizer", "Qwen/Qwen3-8B")
	if got.Code != cli.ExitFailure || !strings.Contains(got.Stderr, "sha256") || !strings.Contains(got.Stderr,
		"aeb13307") {
		t.Errorf("tokens with a tokenizer of another digest = %+v", got)
	}
}

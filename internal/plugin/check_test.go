// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

func TestRenderCheck(t *testing.T) {
	text, err := os.ReadFile("../renderer/templated/testdata/chatml.jinja")
	if err != nil {
		t.Fatal(err)
	}
	vocabulary := part(t, "qwen3")
	qwen, template := file(t, "tokenizer.json", vocabulary), file(t, "chatml.jinja", text)
	changed := file(t, "changed.jinja", []byte(strings.Replace(string(text), `'<|im_start|>' + m.role + '\n'`,
		`'<|im_start|>' + m.role + ' '`, 1)))
	dated := file(t, "dated.jinja", []byte("{{ strftime_now('%d %B %Y') }}{% for m in messages %} {{ m.content }}<|im_end|>{% endfor %}"))
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "tokenizer.json":
			_, _ = w.Write(vocabulary)
		case "chat_template.jinja":
			_, _ = w.Write(text)
		default:
			http.NotFound(w, r)
		}
	}))
	defer hub.Close()
	const hello = `{"messages": [{"role": "user", "content": "Hello!"}]}`
	const prompt = `<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n`
	expecting := func(expected string) string {
		return strings.TrimSuffix(hello, "}") + `, "expected": ` + expected + "}"
	}
	for name, tc := range map[string]struct {
		args, stdin string
		code        int
		want        []string
	}{
		"the template of a file": {args: "--template " + template + " --tokenizer " + qwen, stdin: hello,
			want: []string{`"ids":[151644,872,198,9707,0,151645,198,151644,77091,198]`, `"stop":{"tokens":[151645]}`}},
		"equal prompts": {args: "--check --renderer qwen3 --template " + template + " --tokenizer " + qwen,
			stdin: hello + "\n" + hello, want: []string{`{"same":true,"tokens":10}` + "\n" + `{"same":true,"tokens":10}`}},
		"the first difference": {args: "--check --renderer qwen3 --template " + changed + " --tokenizer " + qwen,
			stdin: "\n" + hello, code: cli.ExitFailure,
			want: []string{"line 2: the prompts differ at token 2", `after "<|im_start|>user"`, `the renderer writes "\nHello!`,
				`(198 9707`, `the template writes " Hello!`}},
		"an expected text": {args: "--check --template " + template + " --tokenizer " + qwen + " --renderer qwen3",
			stdin: expecting(`"` + prompt + `"`), want: []string{`{"same":true,"tokens":10}`}},
		"another text than expected": {args: "--check --renderer qwen3 --tokenizer " + qwen,
			stdin: expecting(`"<|im_start|>user\nHello?"`), code: cli.ExitFailure,
			want: []string{`after "<|im_start|>user\nHello"`, `the line expects "?"`}},
		"expected ids": {args: "--check --renderer qwen3 --tokenizer " + qwen,
			stdin: expecting("[151644,872,198,9707,0,151645,198,151644,77091,198]"), want: []string{`{"same":true,"tokens":10}`}},
		"a prompt that goes on": {args: "--check --renderer qwen3 --tokenizer " + qwen,
			stdin: expecting("[151644,872]"), code: cli.ExitFailure, want: []string{"at token 2", `the line expects "" (the end)`}},
		"an unknown model by its own template": {args: "--tokenizer me/mine", stdin: hello,
			want: []string{`"ids":[151644,872,198,9707,0,151645,198,151644,77091,198]`}},
		"an unknown model with what another program made": {args: "--check --tokenizer me/mine",
			stdin: expecting(`"` + prompt + `"`), want: []string{`{"same":true,"tokens":10}`}},
		"an unknown model with nothing to compare": {args: "--check --tokenizer me/mine", stdin: hello, code: cli.ExitFailure,
			want: []string{"nothing to compare with"}},
		"a renderer with the own template of a model": {args: "--check --renderer qwen3 --tokenizer me/mine", stdin: hello,
			want: []string{`{"same":true,"tokens":10}`}},
		"a template that cannot be used": {args: "--template " + file(t, "broken.jinja", []byte("\n{% nosuch %}")) +
			" --tokenizer " + qwen, stdin: hello, code: cli.ExitFailure, want: []string{"line 2"}},
		"a template with a date": {args: "--date 2026-11-27 --template " + dated + " --tokenizer " + qwen, stdin: hello,
			want: []string{`"text":"27 November 2026 Hello!<|im_end|>`}},
		"a template with a date that is not given": {args: "--template " + dated + " --tokenizer " + qwen, stdin: hello,
			code: cli.ExitUsage, want: []string{"--date is required"}},
		"check and parse": {args: "--check --parse --renderer qwen3 --tokenizer " + qwen, code: cli.ExitUsage,
			want: []string{"--check", "--parse"}},
		"renderer and template": {args: "--renderer qwen3 --template " + template + " --tokenizer " + qwen,
			code: cli.ExitUsage, want: []string{"--renderer and --template"}},
		"own template of a file": {args: "--template own --tokenizer " + qwen, code: cli.ExitUsage,
			want: []string{"--template is required"}},
		"neither": {args: "--check --tokenizer " + qwen, code: cli.ExitUsage, want: []string{"--renderer is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			variables := map[string]string{"HF_ENDPOINT": hub.URL}
			got := call(t, variables, tc.stdin, append([]string{"render"}, strings.Fields(tc.args)...)...)
			if got.Code != tc.code {
				t.Errorf("code %d, want %d: %+v", got.Code, tc.code, got)
			}
			for _, part := range tc.want {
				if !strings.Contains(got.Stdout+got.Stderr, part) {
					t.Errorf("%+v does not say %q", got, part)
				}
			}
		})
	}
}

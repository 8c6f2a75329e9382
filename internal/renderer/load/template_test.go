// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// repository serves the files of a repository by their names, and a tokenizer. For all other files it answers with the
// status otherwise.
func repository(t *testing.T, otherwise int, files map[string]string) *fetch.Fetcher {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := files[path.Base(r.URL.Path)]
		switch {
		case path.Base(r.URL.Path) == "tokenizer.json":
			_, _ = w.Write(model.TokenizerJSON())
		case ok:
			_, _ = w.Write([]byte(text))
		default:
			w.WriteHeader(otherwise)
		}
	}))
	t.Cleanup(server.Close)
	return &fetch.Fetcher{Endpoint: server.URL}
}

func templatedModel(template contract.Template) contract.Model {
	return contract.Model{Name: "own/model", Renderer: contract.RendererTemplate, Date: "2026-11-27",
		Tokenizer: &contract.Tokenizer{Repository: "own/model", SHA256: digest(model.TokenizerJSON())}, Template: &template}
}

const short = `{% for m in messages %}{{ m.role }} {{ m.content }}{{ eos_token }}{% endfor %}`

func TestTemplatesOfARepository(t *testing.T) {
	const quoted = `"{% for m in messages %}{{ m.role }} {{ m.content }}{{ eos_token }}{% endfor %}"`
	for name, files := range map[string]map[string]string{
		"a file of its own":           {"chat_template.jinja": short, "tokenizer_config.json": `{"eos_token": "<|end|>"}`},
		"goes before the field":       {"chat_template.jinja": short, "tokenizer_config.json": `{"eos_token": "<|end|>", "chat_template": "other"}`},
		"a field":                     {"tokenizer_config.json": `{"eos_token": {"content": "<|end|>"}, "chat_template": ` + quoted + `}`},
		"the default of several":      {"tokenizer_config.json": `{"eos_token": "<|end|>", "chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": ` + quoted + `}]}`},
		"tokens that are not strings": {"chat_template.jinja": short, "tokenizer_config.json": `{"eos_token": "<|end|>", "pad_token": null, "add_bos_token": true}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ForModel(t.Context(), repository(t, http.StatusNotFound, files),
				templatedModel(contract.Template{Repository: "own/model"}))
			if err != nil {
				t.Fatal(err)
			}
			want := &contract.Template{Repository: "own/model", Text: short, Names: map[string]string{"eos_token": "<|end|>"}}
			if diff := cmp.Diff(want, r.Template()); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			ids, err := r.Prompt(renderer.Conversation{Messages: []chat.Message{{Role: chat.RoleUser, Content: "q<|end|>"}}})
			wantIDs := []int32{'u', 's', 'e', 'r', ' ', 'q', '<', '|', 'e', 'n', 'd', '|', '>', 256}
			if diff := cmp.Diff(wantIDs, ids); err != nil || diff != "" {
				t.Errorf("prompt, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestUnusableTemplatesOfARepository(t *testing.T) {
	for name, tc := range map[string]struct {
		files     map[string]string
		otherwise int
		template  contract.Template
		want      string
		// passing means that the failure may pass by itself.
		passing bool
	}{
		"none": {map[string]string{"tokenizer_config.json": "{}"}, http.StatusNotFound,
			contract.Template{Repository: "own/model"}, "no chat template", false},
		"no configuration either": {nil, http.StatusNotFound, contract.Template{Repository: "own/model"},
			"no chat template", false},
		"an outage": {nil, http.StatusBadGateway, contract.Template{Repository: "own/model"}, "502", true},
		"syntax": {map[string]string{"chat_template.jinja": "\n{% nosuch %}"}, http.StatusNotFound,
			contract.Template{Repository: "own/model"}, "line 2", false},
		"another digest": {map[string]string{"chat_template.jinja": short}, http.StatusNotFound,
			contract.Template{Repository: "own/model", SHA256: strings.Repeat("0", 64)}, "want 000", false},
		"a broken configuration": {map[string]string{"chat_template.jinja": short, "tokenizer_config.json": "{"},
			http.StatusNotFound, contract.Template{Repository: "own/model"}, "tokenizer_config.json", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ForModel(t.Context(), repository(t, tc.otherwise, tc.files), templatedModel(tc.template))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if _, unusable := errors.AsType[*TemplateError](err); unusable == tc.passing {
				t.Errorf("%v is a *TemplateError: %t, want %t", err, unusable, !tc.passing)
			}
			if _, final := errors.AsType[*Error](err); final {
				t.Errorf("%v is final, but a template can be repaired", err)
			}
		})
	}
}

// TestTemplatesHaveTheDateOfTheRun renders a template that writes the date: it is the run's date, and not today's.
func TestTemplatesHaveTheDateOfTheRun(t *testing.T) {
	const dated = `{{ strftime_now('%d %B %Y') }}{% for m in messages %} {{ m.content }}{{ eos_token }}{% endfor %}`
	template := contract.Template{Text: dated, Names: map[string]string{"eos_token": "<|end|>"}}
	for date, want := range map[string]string{"2026-11-27": "27 November 2026 q<|end|>", "2019-02-01": "01 February 2019 q<|end|>"} {
		model := templatedModel(template)
		model.Date = date
		r, err := ForModel(t.Context(), repository(t, http.StatusNotFound, nil), model)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := r.Prompt(renderer.Conversation{Messages: []chat.Message{{Role: chat.RoleUser, Content: "q"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Tokens.Decode(ids); err != nil || got != want {
			t.Errorf("date %s: got %q, %v, want %q", date, got, err, want)
		}
	}
	model := templatedModel(template)
	model.Date = "27 November"
	if _, err := ForModel(t.Context(), repository(t, http.StatusNotFound, nil), model); err == nil {
		t.Error("a date of another form is taken")
	}
}

func TestCheckComparesTemplates(t *testing.T) {
	sent := contract.Template{Text: short, Names: map[string]string{"eos_token": "<|end|>"}}
	r, err := ForModel(t.Context(), repository(t, http.StatusNotFound, nil), templatedModel(sent))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(templatedModel(sent)); err != nil {
		t.Errorf("the same template: %v", err)
	}
	other := sent
	other.Names = map[string]string{"eos_token": "<|bos|>"}
	for name, changed := range map[string]contract.Model{"other tokens": templatedModel(other), "a renderer": own()} {
		if err := r.Check(changed); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

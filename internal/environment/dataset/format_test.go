// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// columns decodes a row as data sets do.
func columns(t *testing.T, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestTemplate(t *testing.T) {
	const row = `{"a": "x", "list": [44, 19, 35], "words": ["b", "c"], "n": 1.50, "big": 9007199254740993, "yes": true,
		"nested": [[1], {"k": "<é>"}], "empty": []}`
	cases := map[string]struct{ template, want, missing string }{
		"text only":                 {template: "no names, $ and $x and ( )", want: "no names, $ and $x and ( )"},
		"a text":                    {template: "$(a)", want: "x"},
		"several":                   {template: "<$(a)$(a)|$(n)>", want: "<xx|1.50>"},
		"a list with commas":        {template: "numbers $(list), $(words).", want: "numbers 44, 19, 35, b, c."},
		"a large number is exact":   {template: "$(big) $(yes)", want: "9007199254740993 true"},
		"nested values are JSON":    {template: "$(nested)$(empty)", want: `[[1],{"k":"<é>"}]`},
		"two dollars escape a name": {template: "$$(a) costs $$5", want: "$(a) costs $$5"},
		"no closing parenthesis":    {template: "$(a) $(b", want: "x $(b"},
		"a name that is missing":    {template: "$(a) $(b)", missing: "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, missing := parseTemplate(tc.template).render(columns(t, row))
			if got != tc.want || missing != tc.missing {
				t.Errorf("render = %q, missing %q, want %q, %q", got, missing, tc.want, tc.missing)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	user := func(text string) chat.Message { return chat.Message{Role: "user", Content: text} }
	cases := map[string]struct {
		options  settings.Dataset
		columns  string
		prompt   string
		messages []chat.Message
		id       string
		answer   string
	}{
		"columns of the usual names": {columns: `{"prompt": "2+2?", "answer": 4, "id": "r1"}`,
			prompt: "2+2?", messages: []chat.Message{user("2+2?")}, answer: "4", id: "r1"},
		"mapped columns": {options: settings.Dataset{Fields: map[string]string{"prompt": "question", "answer": "truth",
			"id": "task"}},
			columns: `{"question": "q", "truth": "t", "task": 7}`, prompt: "q", messages: []chat.Message{user("q")}, answer: "t",
			id: "7"},
		"templates": {options: settings.Dataset{Prompt: "$(q) of $(kind)", SystemPrompt: "You know $(kind)."},
			columns: `{"q": "a", "kind": "b", "prompt": "unused"}`,
			prompt:  "a of b", messages: []chat.Message{{Role: "system", Content: "You know b."}, user("a of b")}},
		"a template of a mapped field": {options: settings.Dataset{Prompt: "$(nums)",
			Fields: map[string]string{"nums": "numbers"}}, columns: `{"numbers": [1, 2]}`,
			prompt: "1, 2", messages: []chat.Message{user("1, 2")}},
		"examples": {options: settings.Dataset{SystemPrompt: "s",
			Examples: []settings.PromptExample{{Prompt: "4 + 5?", Reply: "9"}}}, columns: `{"prompt": "q"}`,
			prompt: "q", messages: []chat.Message{{Role: "system", Content: "s"}, user("4 + 5?"),
				{Role: "assistant", Content: "9"}, user("q")}},
		"a conversation with examples": {options: settings.Dataset{Examples: []settings.PromptExample{{Prompt: "e",
			Reply: "r"}}},
			columns: `{"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}`,
			prompt:  "q", messages: []chat.Message{{Role: "system", Content: "s"}, user("e"), {Role: "assistant", Content: "r"},
				user("q")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NewFormat(tc.options).Row(columns(t, tc.columns))
			if err != nil {
				t.Fatal(err)
			}
			if got.Prompt != tc.prompt || got.Answer != tc.answer || got.ID != tc.id {
				t.Errorf("row = %+v", got)
			}
			if diff := cmp.Diff(tc.messages, got.Messages); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatKeepsFields(t *testing.T) {
	row, err := NewFormat(settings.Dataset{Fields: map[string]string{"answer": "truth"}}).Row(columns(t,
		`{"prompt": "q", "truth": 4, "nums": [1]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"prompt": "q", "truth": json.Number("4"), "answer": json.Number("4"),
		"nums": []any{json.Number("1")}}
	if diff := cmp.Diff(want, row.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestFormatErrors(t *testing.T) {
	cases := map[string]struct {
		options       settings.Dataset
		columns, want string
	}{
		"a mapped column that is missing": {settings.Dataset{Fields: map[string]string{"answer": "truth"}},
			`{"prompt": "q", "label": 1}`,
			`dataset.fields.answer: the row has no column "truth"; its columns are label, prompt: correct the name, or the data`},
		"a mapped column that is null": {settings.Dataset{Fields: map[string]string{"answer": "truth"}},
			`{"prompt": "q", "truth": null}`,
			`dataset.fields.answer: the row has null in column "truth"; its columns are prompt: correct the name, or the data`},
		"a template's name": {settings.Dataset{Prompt: "$(question)?"}, `{"prompt": "q"}`,
			`dataset.prompt: the row has no column "question"; its columns are prompt: correct the name, or the data`},
		"a system prompt's name": {settings.Dataset{SystemPrompt: "$(x)"}, `{"prompt": "q"}`,
			`dataset.systemPrompt: the row has no column "x"; its columns are prompt: correct the name, or the data`},
		"no prompt": {settings.Dataset{}, `{"question": "q"}`,
			`dataset.prompt: the row has no column "prompt"; its columns are question: give a template, such as prompt: $(question), or map the column, as in fields: {prompt: question}`},
		"a prompt of an object": {settings.Dataset{}, `{"prompt": {"a": 1}}`,
			"dataset.fields.prompt: the row has a prompt that is an object: "},
		"a conversation that ends with a reply": {settings.Dataset{}, `{"prompt": [{"role": "assistant", "content": "r"}]}`,
			"has a prompt that does not end with a message of the user"},
		"a message without content": {settings.Dataset{}, `{"prompt": [{"role": "user", "content": "r"}, {"role": "user"}]}`,
			"has no valid message at position 2"},
		"two system messages": {settings.Dataset{SystemPrompt: "s"},
			`{"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}`,
			"dataset.systemPrompt: the row has a system message of its own"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewFormat(tc.options).Row(columns(t, tc.columns))
			var column *ColumnError
			if !errors.As(err, &column) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Row = %v, want %s", err, tc.want)
			}
		})
	}
}

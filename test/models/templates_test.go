// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/renderer/chattemplate"
	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

type (
	templateQuestion struct {
		Name      string `json:"name"`
		Source    string `json:"source"`
		Variables string `json:"variables"`
	}
	templateAnswer struct {
		Text   *string `json:"text"`
		Error  string  `json:"error"`
		Raised bool    `json:"raised"`
	}
)

// templateDate is the date that templates.py pins.
var templateDate = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// renderTemplate renders a template with the interpreter.
func renderTemplate(source, variables string) (string, error) {
	parsed, err := chattemplate.Parse(source)
	if err != nil {
		return "", err
	}
	value, err := pyjson.Parse(variables)
	if err != nil {
		return "", err
	}
	all := map[string]any{}
	for _, f := range pyjson.ObjectOf(value).Fields {
		all[f.Name] = f.Value
	}
	out, err := parsed.Render(all, chattemplate.Options{Date: templateDate})
	return out.Text(), err
}

// ofViews matches the refusal of an operation of Python's sets, which the keys and items of dicts have as well.
var ofViews = regexp.MustCompile(`unsupported operand type\(s\) for -: .*'dict_(items|keys)'|'dict_(items|keys)' have no order`)

// templateDifference returns the difference of the interpreter's answer from jinja2's, or "" if they agree.
func templateDifference(q templateQuestion, want templateAnswer) string {
	got, err := renderTemplate(q.Source, q.Variables)
	var failed *chattemplate.Error
	switch {
	case strings.HasPrefix(want.Error, "AssertionError: Tried to resolve a name"),
		strings.HasPrefix(want.Error, "TimeoutError"):
		return "" // a fault of jinja2's compiler, and a template that takes too long
	case errors.As(err, &failed) && failed.Kind == chattemplate.Exhausted:
		return "" // a bound of ours, which jinja2 does not have
	case want.Text != nil && failed != nil && ofViews.MatchString(failed.Message):
		return "" // a set, which the interpreter does not have
	case want.Text == nil && err == nil:
		return "got a text, want the refusal " + want.Error + "\n" + got
	case want.Text == nil && want.Raised != chattemplate.IsRaised(err):
		return "got " + err.Error() + ", want the refusal " + want.Error
	case want.Text != nil && err != nil:
		return "got " + err.Error() + ", want the text\n" + *want.Text
	case want.Text != nil && got != *want.Text:
		return "(-want +got):\n" + cmp.Diff(*want.Text, got)
	}
	return ""
}

// recorded is the folder of the snippets whose texts the tests of the package compare with.
const recorded = root + "/internal/renderer/chattemplate/testdata"

// TestRecordedTemplates compares jinja2's output with the recorded output of the snippets. With MODELS_RECORD=1 it
// records the output.
func TestRecordedTemplates(t *testing.T) {
	variables, err := os.ReadFile(filepath.Join(recorded, "variables.json"))
	if err != nil {
		t.Fatal(err)
	}
	type snippet struct {
		Source  string  `json:"source"`
		Text    *string `json:"text,omitempty"`
		Refused bool    `json:"refused,omitempty"`
		Raised  bool    `json:"raised,omitempty"`
	}
	text, err := os.ReadFile(filepath.Join(recorded, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var before []snippet
	for line := range strings.Lines(string(text)) {
		var s snippet
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		before = append(before, s)
	}
	var after []snippet
	questions := func(yield func(templateQuestion) bool) {
		for _, s := range before {
			if !yield(templateQuestion{"", s.Source, string(variables)}) {
				return
			}
		}
	}
	askProgram(t, []string{"templates.py"}, questions, func(q templateQuestion, a templateAnswer) {
		after = append(after, snippet{q.Source, a.Text, a.Text == nil, a.Raised})
	})
	if os.Getenv("MODELS_RECORD") == "" {
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("the record is not what jinja2 says (-recorded +jinja2):\n%s", d)
		}
		return
	}
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	for _, s := range after {
		if err := lines.Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(recorded, "cases.jsonl"), out.Bytes())
}

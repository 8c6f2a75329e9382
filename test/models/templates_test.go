// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models && templates

package models

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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
	conversation struct {
		Name      string          `json:"name"`
		Variables json.RawMessage `json:"variables"`
	}
)

// templateDate is the date that templates.py pins.
var templateDate = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// renderTemplate renders as the interpreter does.
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

// templateDifference compares the interpreter's answer with jinja2's. It is empty where they agree.
func templateDifference(q templateQuestion, want templateAnswer) string {
	got, err := renderTemplate(q.Source, q.Variables)
	var failed *chattemplate.Error
	switch {
	case strings.HasPrefix(want.Error, "AssertionError: Tried to resolve a name"),
		strings.HasPrefix(want.Error, "TimeoutError"):
		return "" // a fault of jinja2's compiler, and a template that takes too long
	case errors.As(err, &failed) && failed.Kind == chattemplate.Exhausted:
		return "" // a bound of ours, which jinja2 does not have
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

// conversations are what each template renders.
func conversations(t *testing.T) []conversation {
	t.Helper()
	text, err := os.ReadFile("testdata/conversations.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []conversation
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c conversation
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// templates reads the templates of the packages of hack/models/templates.sh. TEMPLATES_DIR names another folder.
func templates(t *testing.T) map[string]string {
	t.Helper()
	folder := os.Getenv("TEMPLATES_DIR")
	if folder == "" {
		output, err := exec.Command(root + "/hack/models/templates.sh").Output()
		if err != nil {
			t.Fatalf("getting the templates: %v\n%s", err, stderr(err))
		}
		folder = strings.TrimSpace(string(output))
	}
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jinja" {
			return err
		}
		source, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		out[name] = string(source)
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("reading the templates of %s: %d of them: %v", folder, len(out), err)
	}
	return out
}

// TestTemplates compares the interpreter with jinja2 on the templates of models.
func TestTemplates(t *testing.T) {
	all, talks := templates(t), conversations(t)
	questions := func(yield func(templateQuestion) bool) {
		for name, source := range all {
			for _, c := range talks {
				if !yield(templateQuestion{name + ": " + c.Name, source, string(c.Variables)}) {
					return
				}
			}
		}
	}
	wrong, compared := map[string]int{}, 0
	texts := map[string]bool{}
	askProgram(t, []string{"templates.py"}, questions, func(q templateQuestion, want templateAnswer) {
		compared++
		name, _, _ := strings.Cut(q.Name, ": ")
		texts[name] = texts[name] || want.Text != nil
		if d := templateDifference(q, want); d != "" {
			if wrong[name]++; wrong[name] <= 1 {
				t.Errorf("%s: %.1500s", q.Name, d)
			}
		}
	})
	for name := range all {
		if !texts[name] {
			t.Logf("%s: jinja2 renders no conversation", name)
		}
	}
	t.Logf("%d of %d templates without a difference, %d renderings compared", len(all)-len(wrong), len(all), compared)
}

// recorded is the folder of the snippets whose texts the tests of the package compare with.
const recorded = root + "/internal/renderer/chattemplate/testdata"

// TestRecordedTemplates checks that jinja2 says what the snippets have recorded. With MODELS_RECORD=1 it records them.
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models && templates

package models

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// conversation is the input of a template.
type conversation struct {
	Name      string          `json:"name"`
	Variables json.RawMessage `json:"variables"`
}

// conversations returns the conversations that each template renders.
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
	t.Parallel()
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

var pieces = regexp.MustCompile(`\{[%{#][-+]?|[-+]?[%}#]\}|\w+|'[^'\n]*'|\s+|.`)

// edited changes a template in a few places.
func (g *snippets) edited(source string) string {
	parts := pieces.FindAllString(source, -1)
	for range 1 + g.IntN(3) {
		i, j := g.IntN(len(parts)), g.IntN(len(parts))
		switch g.IntN(7) {
		case 0:
			parts = slices.Delete(parts, i, i+1)
		case 1:
			parts = slices.Insert(parts, i, parts[j])
		case 2:
			parts[i], parts[j] = parts[j], parts[i]
		case 3:
			parts[i] = parts[j]
		case 4:
			parts[i] = g.one("not", "none", "true", "''", "[]", "0", "-1", "messages", "loop", "|trim", "|length", "|tojson",
				"is defined", "[0]", "[-1:]", " or ", " and ")
		case 5:
			parts[i] = strings.NewReplacer("{%", "{%-", "%}", "-%}", "{{", "{{-", "}}", "-}}", "-", "").Replace(parts[i])
		default:
			parts = slices.Insert(parts, i, g.one("\n", " ", "  {# c #}\n", "{{ loop }}", "{% set content = 1 %}",
				"{{ messages|length }}", "{%- if true %}x{% endif %}"))
		}
	}
	return strings.Join(parts, "")
}

// TestEditedTemplates compares on edits of the templates of models: one in fifty of MODELS_TEXTS, and at least 200.
func TestEditedTemplates(t *testing.T) {
	t.Parallel()
	count, seed := max(200, number(t, "MODELS_TEXTS", 2000)/50), number(t, "MODELS_SEED", 1)
	all, talks := templates(t), conversations(t)
	names := slices.Sorted(maps.Keys(all))
	g := &snippets{Rand: rand.New(rand.NewPCG(seed, 2))}
	compareTemplates(t, seed, func(yield func(templateQuestion) bool) {
		for range count {
			name := g.one(names...)
			source := g.edited(all[name])
			for range 3 {
				c := talks[g.IntN(len(talks))]
				if !yield(templateQuestion{name + ": " + c.Name, source, string(c.Variables)}) {
					return
				}
			}
		}
	})
}

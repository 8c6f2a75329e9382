// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestExportedNamesAreExplained(t *testing.T) {
	for _, s := range load(t, false) {
		for _, declaration := range s.file.Decls {
			for _, name := range unexplained(declaration) {
				t.Errorf("%s: exported %s has no comment", s.path, name)
			}
		}
	}
}

// unexplained lists the exported names of a declaration that no comment covers.
func unexplained(declaration ast.Decl) []string {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return nil
		}
		var names []string
		for _, spec := range d.Specs {
			names = append(names, unexplainedSpec(spec)...)
		}
		return names
	}
	return nil
}

func unexplainedSpec(spec ast.Spec) []string {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil {
			return []string{s.Name.Name}
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
			return []string{s.Names[0].Name}
		}
	}
	return nil
}

func TestEveryPackageIsExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, s := range load(t, false) {
		explained[s.dir()] = explained[s.dir()] || s.file.Doc != nil
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// TestReadmeMapIsTheTree checks that each name in the map of README.md, "Where things are", exists.
func TestReadmeMapIsTheTree(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Where things are\n")
	if !found {
		t.Fatal("README.md has no section \"Where things are\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile(`(?m)^ {4}([a-z][a-z0-9/]*(?:, [a-z]+)*)`).FindAllStringSubmatch(section, -1)
	if len(names) == 0 {
		t.Fatal("the map of README.md is empty")
	}
	for _, match := range names {
		for _, name := range strings.Split(match[1], ", ") {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("README.md names %s, which does not exist", name)
			}
		}
	}
}

// TestArchitectureNamesEveryPackage checks that docs/architecture.md names each package of api and internal in code
// quotes. It names packages of internal without "internal/".
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for dir := range imports(t) {
		if name := strings.TrimPrefix(dir, "internal/"); name != dir || strings.HasPrefix(dir, "api/") {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/architecture.md does not name %s: add it to a table there, with its knowledge", name)
			}
		}
	}
}

// TestAgentsPageShowsTheSample checks that the agent at the head of docs/agents.md equals the agent of the sample.
func TestAgentsPageShowsTheSample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	sample, err := os.ReadFile(filepath.Join(root, "config/samples/agent-openai.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(sample), "\n  execution:\n")
	code, _, found := strings.Cut(rest, "---\n")
	want := "    execution:\n"
	for line := range strings.Lines(code) {
		if line != "\n" {
			line = "  " + line
		}
		want += line
	}
	if !found || !strings.Contains(string(page), want) {
		t.Errorf("docs/agents.md does not show the agent of config/samples/agent-openai.yaml:\n%s", want)
	}
}

// TestGlossaryIsSorted checks that the words of docs/glossary.md are in alphabetical order.
func TestGlossaryIsSorted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, match := range regexp.MustCompile(`(?m)^\| ([a-z][^|]*[^| ]) +\|`).FindAllStringSubmatch(string(text), -1) {
		if match[1] != "word" {
			words = append(words, match[1])
		}
	}
	if len(words) == 0 {
		t.Error("docs/glossary.md explains no words")
	}
	if !slices.IsSorted(words) {
		t.Errorf("docs/glossary.md is not in alphabetical order: %q", words)
	}
}

func TestCommittedFilesSpeakOfTheProjectAlone(t *testing.T) {
	header := "// Copyright 2026 The tinker-operator authors."
	for _, tests := range []bool{false, true} {
		for _, s := range load(t, tests) {
			if len(s.file.Comments) == 0 || s.file.Comments[0].List[0].Text != header {
				t.Errorf("%s does not begin with the licence header", s.path)
			}
		}
	}
}

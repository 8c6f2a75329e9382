// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestProducers checks that a program produces each code of the table: it uses the code as a value, and does not only
// compare with it.
func TestProducers(t *testing.T) {
	names := constants(t, "codes.go", "")
	produced := map[string]bool{}
	reasons := map[string]string{}
	files, err := filepath.Glob("../../api/v1alpha1/*_conditions.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the API has the files %v (%v), want the files of its conditions", files, err)
	}
	for _, file := range files {
		for name, value := range constants(t, file, "Reason") {
			reasons[name] = value
		}
	}
	for _, root := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(path, "../../internal/problem/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, used := range values(file) {
				switch used.X.(*ast.Ident).Name {
				case "problem":
					produced[names[used.Sel.Name]] = true
				case "v1alpha1":
					produced[reasons[used.Sel.Name]] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, code := range Codes() {
		if !produced[string(code)] {
			t.Errorf("no program produces %s", code)
		}
	}
	for name, code := range names {
		if !IsKnown(Code(code)) {
			t.Errorf("the code %s has no row", name)
		}
	}
}

// values returns the selectors of packages that a file uses as values: all but the operands of == and != and the
// values of cases.
func values(file *ast.File) []*ast.SelectorExpr {
	compared := map[ast.Expr]bool{}
	var all []*ast.SelectorExpr
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compared[n.X], compared[n.Y] = true, true
			}
		case *ast.CaseClause:
			for _, value := range n.List {
				compared[value] = true
			}
		case *ast.SelectorExpr:
			if _, ok := n.X.(*ast.Ident); ok && !compared[n] {
				all = append(all, n)
			}
		}
		return true
	})
	return all
}

// constants returns the string constants of a file whose names have a prefix, by name.
func constants(t *testing.T, path, prefix string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			all[spec.Names[0].Name] = value
		}
		return true
	})
	return all
}

// TestTroubleshootingPage checks that the page has each code with its meaning and its repair.
func TestTroubleshootingPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]string{}
	reason := ""
	for line := range strings.Lines(string(data)) {
		if item, found := strings.CutPrefix(line, "- "); found {
			reason, _, _ = strings.Cut(item, ": ")
			reason, _, _ = strings.Cut(strings.TrimSuffix(reason, ":\n"), ", ")
			items[reason] = item
		}
		if item, found := strings.CutPrefix(line, "  - "); found {
			code, _, _ := strings.Cut(item, ": ")
			code, _, _ = strings.Cut(code, ", ")
			items[reason+" ("+code+")"] = item
		}
	}
	for _, code := range Codes() {
		row := Lookup(code)
		name := "`" + row.Reason + "`"
		if row.Reason != string(code) {
			name += " (" + string(code) + ")"
		}
		item := items[name]
		if within, found := items[name+" ("+string(code)+")"]; found {
			item = within // the reason has several codes
		}
		for what, text := range map[string]string{"its meaning": row.Explanation(), "its repair": row.Advice()} {
			text = strings.ReplaceAll(text, "$(run)", "RUN")
			if !strings.Contains(item, text) {
				t.Errorf("docs/troubleshooting.md: the item of %s is %q, want %s: %q; run make manifests", code, item, what, text)
			}
		}
	}
}

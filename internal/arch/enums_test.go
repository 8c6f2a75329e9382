// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// homonyms are literals that equal an enum's value and mean something else.
var homonyms = map[string][]string{
	// These are actions of events.
	"internal/controller/record/runevents.go":              {"Wait", "Complete"},
	"internal/controller/record/origin.go":                 {"Continue"},
	"internal/controller/trainingrun/apply.go":             {"Restart"},
	"internal/controller/namespacelease/namespacelease.go": {"Refuse"},
	"internal/rollout/episode/episode.go":                  {"Step"}, // This is a method's name.
}

// TestEnumsAreNotSpelledAsLiterals finds string literals that equal the value of a typed constant of the API or
// internal/contract, in these packages and in files that import one of them. Other files use other vocabularies, for
// instance Tinker's wire format. Declarations of constants are exempt, because they define values.
func TestEnumsAreNotSpelledAsLiterals(t *testing.T) {
	sources := load(t, false)
	enums := map[string]string{}
	for _, s := range sources {
		if defines(s.dir()) {
			addEnums(enums, s)
		}
	}
	if len(enums) == 0 {
		t.Fatal("found no enums")
	}
	for _, s := range sources {
		if !defines(s.dir()) && !importsEnums(s.file) {
			continue
		}
		for _, literal := range literals(s.file) {
			value, err := strconv.Unquote(literal.Value)
			if err == nil && enums[value] != "" && !slices.Contains(homonyms[s.path], value) {
				t.Errorf("%s: use the constant %s in place of %s", s.fset.Position(literal.Pos()), enums[value], literal.Value)
			}
		}
	}
}

func defines(dir string) bool {
	return slices.Contains([]string{"api/v1alpha1", "api/v1alpha1/algorithm", "api/v1alpha1/environment",
		"api/v1alpha1/playing", "internal/contract"}, dir)
}

// importsEnums reports whether a file imports a package that defines enums.
func importsEnums(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		name, err := strconv.Unquote(spec.Path.Value)
		own, ok := strings.CutPrefix(name, module)
		return err == nil && ok && defines(own)
	})
}

// addEnums adds the string constants of the file that have a type of their own.
func addEnums(enums map[string]string, s source) {
	for _, declaration := range s.file.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			constant := spec.(*ast.ValueSpec)
			for i, value := range constant.Values {
				literal, ok := value.(*ast.BasicLit)
				if ok && constant.Type != nil && literal.Kind == token.STRING {
					text, _ := strconv.Unquote(literal.Value)
					enums[text] = s.dir() + "." + constant.Names[i].Name
				}
			}
		}
	}
}

// literals returns the string literals of a file outside declarations of constants, struct tags and imports.
func literals(file *ast.File) []*ast.BasicLit {
	var all []*ast.BasicLit
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST && n.Tok != token.IMPORT
		case *ast.StructType:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				all = append(all, n)
			}
		}
		return true
	})
	return all
}

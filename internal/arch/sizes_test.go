// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"regexp"
	"testing"
)

// The limits of a file and of a function in lines: longer ones are hard to read.
const (
	maxFile     = 500
	maxFunction = 60
)

func TestNoPackageIsADrawer(t *testing.T) {
	drawer := regexp.MustCompile(`(^|/)(utils?|common|helpers?|types|constants|misc)$`)
	for dir := range imports(t) {
		if drawer.MatchString(dir) {
			t.Errorf("%s: name the package after its content", dir)
		}
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, s := range load(t, false) {
		if lines := s.lines(); lines > maxFile {
			t.Errorf("%s has %d lines, %d are the limit: split it by topic", s.path, lines, maxFile)
		}
		for _, declaration := range s.file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			length := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if length > maxFunction {
				t.Errorf("%s: %s has %d lines, %d are the limit", s.path, f.Name.Name, length, maxFunction)
			}
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	switch generic := kind.(type) {
	case *ast.IndexExpr:
		kind = generic.X
	case *ast.IndexListExpr:
		kind = generic.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

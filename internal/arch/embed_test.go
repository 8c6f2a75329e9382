// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestNoTypeEmbedsAMutableOne finds structs that embed a pointer to a type of their package whose methods change it.
// Such a struct has all fields and methods of the embedded type, which hides which of them it needs: name the field.
func TestNoTypeEmbedsAMutableOne(t *testing.T) {
	structs, changed := map[string]bool{}, map[string]bool{}
	sources := load(t, false)
	for _, s := range sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, ok := spec.Type.(*ast.StructType); ok {
					structs[s.dir()+"."+spec.Name.Name] = true
				}
			}
			if f, ok := n.(*ast.FuncDecl); ok && f.Recv != nil && changesReceiver(f) {
				changed[s.dir()+"."+receiver(f)] = true
			}
			return true
		})
	}
	for _, s := range sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			for _, name := range embeddedPointers(spec) {
				if of := s.dir() + "." + name; structs[of] && changed[of] {
					t.Errorf("%s: %s embeds *%s, which its methods change: name the field", s.path, spec.Name.Name, name)
				}
			}
			return true
		})
	}
}

// embeddedPointers returns the names of the types of the package that a struct embeds as pointers.
func embeddedPointers(spec *ast.TypeSpec) (names []string) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range structure.Fields.List {
		pointer, ok := field.Type.(*ast.StarExpr)
		if !ok || len(field.Names) > 0 {
			continue
		}
		if name, ok := pointer.X.(*ast.Ident); ok {
			names = append(names, name.Name)
		}
	}
	return names
}

// changesReceiver reports whether a method assigns to a field of its receiver, which is a pointer.
func changesReceiver(f *ast.FuncDecl) (changes bool) {
	if _, ok := f.Recv.List[0].Type.(*ast.StarExpr); !ok || len(f.Recv.List[0].Names) == 0 || f.Body == nil {
		return false
	}
	name := f.Recv.List[0].Names[0].Name
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch statement := n.(type) {
		case *ast.AssignStmt:
			for _, left := range statement.Lhs {
				changes = changes || statement.Tok != token.DEFINE && isFieldOf(left, name)
			}
		case *ast.IncDecStmt:
			changes = changes || isFieldOf(statement.X, name)
		}
		return true
	})
	return changes
}

// isFieldOf reports whether an expression is a field of a variable, or of one of its fields.
func isFieldOf(e ast.Expr, variable string) bool {
	for {
		switch inner := e.(type) {
		case *ast.SelectorExpr:
			if name, ok := inner.X.(*ast.Ident); ok {
				return name.Name == variable
			}
			e = inner.X
		case *ast.IndexExpr:
			e = inner.X
		default:
			return false
		}
	}
}

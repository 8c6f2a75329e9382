// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tinker-operator/tinker-operator/"

// root is the root of the tree, as seen from this package.
const root = "../.."

// source is one hand-written Go file.
type source struct {
	path string // relative to the root, with slashes
	file *ast.File
	fset *token.FileSet
}

func (s source) dir() string { return path.Dir(s.path) }

func (s source) lines() int { return s.fset.File(s.file.FileStart).LineCount() }

var generated = regexp.MustCompile(`(zz_generated|\.pb\.go$)`)

// load returns the hand-written files of the tree: either programs and packages, or their tests.
func load(t *testing.T, withTests bool) []source {
	t.Helper()
	all, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	sources := slices.DeleteFunc(slices.Clone(all), func(s source) bool {
		return strings.HasSuffix(s.path, "_test.go") != withTests
	})
	if len(sources) == 0 {
		t.Fatal("found no files: is the test run from its own folder?")
	}
	return sources
}

// parse parses all hand-written files once.
var parse = sync.OnceValues(func() ([]source, error) {
	var sources []source
	for _, top := range []string{"api", "cmd", "internal", "hack", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			relative = filepath.ToSlash(relative)
			if generated.MatchString(relative) {
				return nil
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			sources = append(sources, source{path: relative, file: file, fset: fset})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return sources, nil
})

// imports maps each package below the root to the imports of its files, without duplicates.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, s := range load(t, false) {
		if all[s.dir()] == nil {
			all[s.dir()] = map[string]bool{}
		}
		for _, spec := range s.file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			all[s.dir()][name] = true
		}
	}
	result := map[string][]string{}
	for dir, set := range all {
		result[dir] = slices.Sorted(maps.Keys(set))
	}
	return result
}

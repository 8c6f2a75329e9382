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
	"testing"
)

const module = "github.com/tinker-operator/tinker-operator/"

// root of the tree, as seen from this package.
const root = "../.."

// source is one Go file that is written by hand and belongs to the product.
type source struct {
	path string // relative to the root, with slashes
	file *ast.File
	fset *token.FileSet
}

func (s source) dir() string { return path.Dir(s.path) }

func (s source) lines() int { return s.fset.File(s.file.FileStart).LineCount() }

var generated = regexp.MustCompile(`(zz_generated|\.pb\.go$)`)

// load parses the product's files: tests, generated files and modules of their own are left out.
func load(t *testing.T, withTests bool) []source {
	t.Helper()
	var sources []source
	for _, top := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			relative = filepath.ToSlash(relative)
			if generated.MatchString(relative) || strings.HasSuffix(relative, "_test.go") != withTests {
				return nil
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			sources = append(sources, source{path: relative, file: file, fset: fset})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(sources) == 0 {
		t.Fatal("found no files: is the test run from its own folder?")
	}
	return sources
}

// imports maps each package below the root to what its files import, without duplicates.
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

func TestNoPackageIsADrawer(t *testing.T) {
	drawer := regexp.MustCompile(`(^|/)(utils?|common|helpers?|types|constants|misc)$`)
	for dir := range imports(t) {
		if drawer.MatchString(dir) {
			t.Errorf("%s: name the package after what it holds", dir)
		}
	}
}

func TestSizes(t *testing.T) {
	const file, function, long = 500, 80, 350
	var total, over int
	for _, s := range load(t, false) {
		total++
		lines := s.lines()
		if lines > file {
			t.Errorf("%s has %d lines, %d are the limit: split it by topic", s.path, lines, file)
		}
		if lines > long {
			over++
		}
		for _, declaration := range s.file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			length := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if length > function {
				t.Errorf("%s: %s has %d lines, %d are the limit", s.path, f.Name.Name, length, function)
			}
		}
	}
	if over*20 > total {
		t.Errorf("%d of %d files have over %d lines; one in twenty may", over, total, long)
	}
}

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
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
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

// exportedReceiver says whether a function is reachable from outside: no method of a hidden type.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	kind := f.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	name, ok := kind.(*ast.Ident)
	return ok && name.IsExported()
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

func TestClockAndEnvironmentStayOutside(t *testing.T) {
	// Pure packages are given the time; only programs read their environment. The controllers get
	// their clock where they are put together.
	const wiring = "internal/controller/setup.go"
	pure := regexp.MustCompile(`^(api/|internal/(rl|contract|desired|status|controller|environment|tokenizer|renderer)(/|$))`)
	for _, s := range load(t, false) {
		ast.Inspect(s.file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			base, ok := selector.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch call := base.Name + "." + selector.Sel.Name; {
			case call == "time.Now" && pure.MatchString(s.path) && s.path != wiring:
				t.Errorf("%s reads the clock: take the time as an argument or a field", s.path)
			case (call == "os.Getenv" || call == "os.LookupEnv") && !strings.HasPrefix(s.path, "cmd/"):
				t.Errorf("%s reads the environment: that is for cmd", s.path)
			}
			return true
		})
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

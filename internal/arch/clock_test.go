// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"regexp"
	"testing"
)

func TestClockAndEnvironmentStayOutside(t *testing.T) {
	// Pure packages take the time as an argument or a field, and only programs read their environment.
	// The controllers get their clock from setup.go.
	const wiring = "internal/controller/setup.go"
	pure := regexp.MustCompile(
		`^(api/|internal/(rl|contract|desired|status|controller|environment|gateway/dialect|runner/protocol|tokenizer|renderer)(/|$))`)
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
			case (call == "os.Getenv" || call == "os.LookupEnv") && s.file.Name.Name != "main":
				t.Errorf("%s reads the environment: that is for programs", s.path)
			}
			return true
		})
	}
}

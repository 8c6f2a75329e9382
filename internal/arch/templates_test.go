// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pages is the folder of the pages of kubectl tinker ui, which runs on a person's machine and is in no image. The pages
// show texts of models and data sets in many contexts of HTML, and html/template escapes each text for its context.
const pages = "internal/plugin/ui/site/"

// TestProgramsHaveNoTemplates finds imports of packages that call methods by name. If a program contains such a
// package, the linker keeps the methods of all types, which makes the program larger by a quarter.
func TestProgramsHaveNoTemplates(t *testing.T) {
	for _, s := range load(t, false) {
		if !strings.HasPrefix(s.path, "cmd/") && !strings.HasPrefix(s.path, "internal/") {
			continue
		}
		for _, spec := range s.file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(s.path, pages) && name == "html/template" {
				continue
			}
			if slices.Contains([]string{"text/template", "html/template", "net/rpc"}, name) {
				t.Errorf("%s imports %s: write the text without it", s.path, name)
			}
		}
	}
}

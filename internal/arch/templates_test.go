// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pages are the pages of kubectl tinker ui, which is on a person's machine and in no image. They show texts of models
// and data sets in each place of a page, which html/template escapes by the place.
const pages = "internal/plugin/ui/site/"

// TestProgramsHaveNoTemplates looks for packages that call methods by name: the linker keeps the methods of all types
// of a program that has one of them, which makes it larger by a quarter.
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

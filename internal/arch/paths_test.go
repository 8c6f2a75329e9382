// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsNameFilesThatExist checks each path in code quotes of the documents that explain the code, and each link.
// A path may leave out "internal/".
func TestDocsNameFilesThatExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z0-9_]+(?:/[A-Za-z0-9_.-]+)+)`|\\]\\(([^)#]+)(?:#[^)]*)?\\)")
	for _, document := range []string{
		"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/design.md", "docs/architecture.md", "docs/glossary.md",
	} {
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			name, near := match[1]+match[2], filepath.Dir(document)
			if strings.HasPrefix(name, "https://") || strings.Contains(name, "NAME") || name == "attempts/<n>" {
				continue
			}
			if !slices.ContainsFunc([]string{near, ".", "internal"}, func(dir string) bool { return exists(dir, name) }) {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(root, dir, name))
	return err == nil
}

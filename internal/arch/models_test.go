// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/models"
)

// TestSamplesNameNoRetiredModel checks that samples and pages name no model that hosted Tinker has retired: the first
// run that a user applies would wait for the model. A comment may name the model of the recipe that a sample follows.
func TestSamplesNameNoRetiredModel(t *testing.T) {
	comment := regexp.MustCompile(`(?m)#.*$`)
	field := regexp.MustCompile(`(?:name|model): ([A-Za-z0-9][\w.-]*/[\w.-]+)`)
	files := 0
	for _, root := range []string{"../../config/samples", "../../docs", "../../README.md"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".md" {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, found := range field.FindAllStringSubmatch(comment.ReplaceAllString(string(data), ""), -1) {
				known, err := models.Lookup(strings.TrimSuffix(found[1], "."))
				if err == nil && known.Retired != "" {
					t.Errorf("%s names %s, which is retired since %s: choose a model that is served", path, known.Name,
						known.Retired)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 40 {
		t.Errorf("%d files were read, want all samples and pages", files)
	}
}

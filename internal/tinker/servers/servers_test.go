// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package servers_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/servers"
)

var update = flag.Bool("update", false, "write the tables of docs/endpoints.md anew")

// TestFeaturesAreThoseOfTheCheck compares each file with the features that the check tries: a new feature must be tried
// at every tested server, or be recorded as unknown.
func TestFeaturesAreThoseOfTheCheck(t *testing.T) {
	kinds := []capability.Support{capability.Supported, capability.Ignored, capability.Unsupported, capability.Unknown}
	for _, s := range servers.All {
		found := s.Features()
		if (found == nil) != (s.Tested == "") {
			t.Errorf("%s %s has %d features, and was tested: %q", s.Name, s.Version, len(found), s.Tested)
		}
		if found == nil {
			continue
		}
		for _, f := range capability.All() {
			if !slices.Contains(kinds, found[f]) {
				t.Errorf("%s %s: %s is %q", s.Name, s.Version, f, found[f])
			}
			delete(found, f)
		}
		if len(found) > 0 {
			t.Errorf("%s %s has features that the check does not try: %v", s.Name, s.Version, found)
		}
	}
}

func TestRowsAreDifferentAndFound(t *testing.T) {
	for i, s := range servers.All {
		if found, ok := servers.Find(s.Name, s.Version); !ok || found.Known != s.Known {
			t.Errorf("row %d, %s %s, is found as %q", i, s.Name, s.Version, found.Known)
		}
		if s.Known == "" {
			t.Errorf("%s %s says nothing", s.Name, s.Version)
		}
	}
	if _, ok := servers.Find(servers.NameSkyRL, "0.0.1"); ok {
		t.Error("a version that is not in the table was found")
	}
}

// TestDocumentationHasTheTables compares the tables of docs/endpoints.md with the package's tables.
func TestDocumentationHasTheTables(t *testing.T) {
	page := filepath.Join("..", "..", "..", "docs", "endpoints.md")
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for name, table := range map[string]string{"servers": servers.Table(), "features": servers.FeatureTable()} {
		begin := fmt.Sprintf("<!-- %s: from internal/tinker/servers -->\n", name)
		end := fmt.Sprintf("<!-- end of %s -->", name)
		head, rest, ok := strings.Cut(text, begin)
		written, tail, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("%s lacks the comments around the table of %s", page, name)
		}
		if written != table && !*update {
			t.Errorf("the table of %s is another: run go test ./internal/tinker/servers -update, and review %s", name, page)
		}
		text = head + begin + table + end + tail
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

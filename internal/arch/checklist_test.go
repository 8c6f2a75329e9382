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

// TestChecklistRunsByItself requires that the nightly workflow, or make test, runs each command of the monthly
// checklist of docs/releasing.md. The check of an endpoint needs a key, which only a person has.
func TestChecklistRunsByItself(t *testing.T) {
	_, list, _ := strings.Cut(readPage(t, "docs/releasing.md"), "## Once a month")
	list, _, _ = strings.Cut(list, "\n## ")
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "nightly.yml"))
	if err != nil {
		t.Fatal(err)
	}
	nightly := string(text)
	suites := regexp.MustCompile(`for suite in ([a-z -]+);`).FindStringSubmatch(readPage(t, "Makefile"))
	if suites == nil {
		t.Fatal("Makefile: make test does not list its suites")
	}
	inTest := strings.Fields(suites[1])
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(list, -1)
	if len(rows) == 0 {
		t.Fatal("docs/releasing.md: the checklist has no commands")
	}
	for _, row := range rows {
		for _, command := range strings.Split(row[1], " && ") {
			if !runsByItself(command, nightly, inTest) {
				t.Errorf("neither nightly.yml nor make test runs %q of the checklist", command)
			}
		}
	}
}

// runsByItself reports whether a command is run by the nightly workflow, or in a suite of make test.
func runsByItself(command, nightly string, inTest []string) bool {
	words := strings.Fields(command)
	switch {
	case words[0] == "go" && words[1] == "test":
		return strings.HasPrefix(words[2], "./internal/") // the suite test-unit
	case words[0] != "make":
		return strings.Contains(nightly, command)
	case words[1] == "conformance-endpoint":
		return true
	}
	return slices.Contains(inTest, words[1]) ||
		regexp.MustCompile(`(?m)(^\s*- |make )`+regexp.QuoteMeta(words[1])+`( |$)`).MatchString(nightly)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesNameKnownCodes checks that the codes of waits and failures in the pages are in the table, and that no page
// advises people to set a field of an earlier API.
func TestPagesNameKnownCodes(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages are found (%v)", len(pages), err)
	}
	named := regexp.MustCompile("(?:code|codes|fails with|=False, |says) `?([A-Z][a-z]+(?:[A-Z][A-Za-z]+)+)`?")
	found := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(data)), " ")
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			found++
			if !IsKnown(Code(match[1])) {
				t.Errorf("%s: %q names no code of the table", page, match[0])
			}
		}
		if strings.Contains(text, "increase `retry`") {
			t.Errorf("%s: the field is spec.retryGeneration", page)
		}
	}
	if found < 12 {
		t.Errorf("the pages name %d codes: the expression no longer finds them", found)
	}
}

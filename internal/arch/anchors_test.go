// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)
	markdownHeading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	linkText        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notOfAnchors    = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinksNameHeadingsThatExist checks the heading of each link from one page of Markdown to another, or within one.
func TestLinksNameHeadingsThatExist(t *testing.T) {
	anchors := map[string]map[string]bool{}
	links := 0
	for _, page := range markdownPages(t) {
		for _, match := range markdownLink.FindAllStringSubmatch(readPage(t, page), -1) {
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			if strings.Contains(match[1], "://") || filepath.Ext(target) != ".md" {
				continue
			}
			if anchors[target] == nil {
				anchors[target] = anchorsOf(readPage(t, target))
			}
			if links++; !anchors[target][match[2]] {
				t.Errorf("%s links to %s, which has no heading with the anchor %s", page, target, match[2])
			}
		}
	}
	if links == 0 {
		t.Error("no page links to a heading")
	}
}

// markdownPages returns the pages whose links are checked.
func markdownPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			page, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, page)
		}
	}
	return pages
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchorsOf returns the anchors that GitHub gives the headings of a page. A repeated heading gets a number.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, match := range markdownHeading.FindAllStringSubmatch(text, -1) {
		heading := linkText.ReplaceAllString(match[1], "$1")
		heading = notOfAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		first := strings.ReplaceAll(heading, " ", "-")
		anchor := first
		for n := 1; anchors[anchor]; n++ {
			anchor = first + "-" + strconv.Itoa(n)
		}
		anchors[anchor] = true
	}
	return anchors
}

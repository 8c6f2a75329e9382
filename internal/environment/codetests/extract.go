// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package codetests

import (
	"regexp"
	"strings"
)

// block is a fenced block of code, whose first line may name a language.
var block = regexp.MustCompile("(?s)```[^\n`]*\n(.*?)```")

// Program returns the program of a reply: the last fenced block of code in it.
func Program(reply string) (string, bool) {
	all := block.FindAllStringSubmatch(reply, -1)
	if len(all) == 0 {
		return "", false
	}
	return strings.TrimSpace(all[len(all)-1][1]), true
}

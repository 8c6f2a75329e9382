// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkflowsAreSmall keeps the contract of environments sufficient for a workflow: selfRefine, the second one, is written in at
// most 150 lines without comments.
func TestWorkflowsAreSmall(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "environment", "workflow", "selfrefine.go"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if lines == 0 || lines > 150 {
		t.Errorf("selfRefine has %d lines, want 150 at most", lines)
	}
}

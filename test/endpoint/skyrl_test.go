// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build skyrl

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/test/skyrl"
)

// TestSkyRL checks every feature of SkyRL and compares what was found with testdata/skyrl-0.3.0.txt.
func TestSkyRL(t *testing.T) {
	server := skyrl.Start(t, filepath.Join("..", ".."), "127.0.0.1:18301")
	var out strings.Builder
	arguments := []string{"-url", server.URL, "-model", skyrl.Model, "-patience", "20m", "-timeout", "60m"}
	err := run(t.Context(), arguments, "tml-skyrl", &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "skyrl-0.3.0.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), supportOf(out.String())); diff != "" {
		t.Errorf("what SkyRL supports (-want +got):\n%s", diff)
	}
}

// supportOf returns the first two columns of the table that run writes: features and their support. The line before the
// table names the server, and the counts follow the table.
func supportOf(output string) string {
	var found strings.Builder
	for line := range strings.Lines(output) {
		columns := strings.Fields(line)
		if strings.HasPrefix(line, "server ") || len(columns) < 2 || strings.HasSuffix(columns[0], ":") {
			continue
		}
		found.WriteString(columns[0] + " " + columns[1] + "\n")
	}
	return found.String()
}

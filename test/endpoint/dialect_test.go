// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// TestFeaturesOfSkyRLDialect checks every feature of tinkersim's dialect of SkyRL. They are those of SkyRL itself.
func TestFeaturesOfSkyRLDialect(t *testing.T) {
	_, url := simulatortest.Serve(t, tinkersim.Options{Dialect: dialect.NameSkyRL})
	compareWithSkyRL(t, url)
	checkLateSamples(t, url)
}

// compareWithSkyRL checks every feature of a server, and compares what was found with testdata/skyrl-0.3.0.txt.
func compareWithSkyRL(t *testing.T, url string) {
	t.Helper()
	var out strings.Builder
	arguments := []string{"-url", url, "-model", tinkersim.ModelName, "-patience", "20m", "-timeout", "60m"}
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
		t.Errorf("features (-SkyRL 0.3.0 +found):\n%s", diff)
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

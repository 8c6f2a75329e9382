// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker/servers"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// TestFeaturesOfSkyRLDialect checks that tinkersim's dialect of SkyRL has the features of SkyRL itself.
func TestFeaturesOfSkyRLDialect(t *testing.T) {
	_, url := simulatortest.Serve(t, tinkersim.Options{Dialect: dialect.NameSkyRL})
	compareWithSkyRL(t, url, "0.3.0")
	checkLateSamples(t, url, true)
}

// compareWithSkyRL checks every feature of a server, and compares the result with a version of SkyRL.
func compareWithSkyRL(t *testing.T, url, version string) {
	t.Helper()
	var out strings.Builder
	arguments := []string{"-url", url, "-model", tinkersim.ModelName, "-patience", "20m", "-timeout", "60m"}
	err := run(t.Context(), arguments, "tml-skyrl", &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	known, ok := servers.Find(servers.NameSkyRL, version)
	if !ok {
		t.Fatalf("the table of servers lacks SkyRL %s", version)
	}
	if diff := cmp.Diff(known.Recorded(), supportOf(out.String())); diff != "" {
		t.Errorf("features (-SkyRL %s +found):\n%s", version, diff)
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

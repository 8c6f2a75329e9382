// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

func TestRun(t *testing.T) {
	_, url := simulatortest.Serve(t, tinkersim.Options{Faults: []fault.Rule{{Op: "asample", Do: fault.IgnoreSeed,
		Count: -1}}})
	var out strings.Builder
	if err := run(t.Context(), []string{"-url", url, "-model", tinkersim.ModelName}, "tml-endpoint", &out); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 1 {
			rows[fields[0]] = fields[1]
		}
	}
	for _, f := range capability.All() {
		want := "supported"
		if f == capability.Seed || f == capability.NumSamples {
			want = "ignored" // The samples of a request cannot be determined by a seed that is ignored.
		}
		if rows[string(f)] != want {
			t.Errorf("%s is %q, want %s", f, rows[string(f)], want)
		}
	}
}

func TestRunWithMissingFlags(t *testing.T) {
	cases := map[string]struct {
		args []string
		key  string
		says string
	}{
		"the URL":        {[]string{"-model", "m"}, "tml-x", "-url"},
		"the model":      {[]string{"-url", "http://localhost:1"}, "tml-x", "-model"},
		"the key":        {[]string{"-url", "http://localhost:1", "-model", "m"}, "", "TINKER_API_KEY"},
		"the URL's host": {[]string{"-url", "localhost:1", "-model", "m"}, "tml-x", "http"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), tc.args, tc.key, &strings.Builder{}); err == nil || !strings.Contains(err.Error(),
				tc.says) {
				t.Errorf("run = %v, want %s in it", err, tc.says)
			}
		})
	}
}

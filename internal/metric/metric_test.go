// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestDescribe(t *testing.T) {
	for name, want := range map[string]string{
		"env/all/reward/total":                 "env/ENV/reward/total",
		"env/sums/reward/format":               "env/ENV/reward/PART",
		"env/debate/judge/reward/total":        "env/ENV/ROLE/reward/total",
		"env/debate/judge/by_group/frac_mixed": "env/ENV/ROLE/by_group/frac_mixed",
		"env/all/stop/length":                  "env/ENV/stop/length",
		"env/all/stop/tool_limit":              "env/ENV/stop/REASON",
		"env/all/my_own/metric":                "env/ENV/NAME",
		"test/env/all/correct":                 "env/ENV/correct",
		"test/env/all/correct/ci95_low":        "env/ENV/correct",
		"test/pass@8":                          "test/pass@K",
		"test/sums/pass@8/ci95_high":           "test/ENV/pass@K",
		"test/sums/nll":                        "test/SPLIT/nll",
		"loss:sum":                             "loss:REDUCTION",
		"unclipped_grad_l2:mean":               "unclipped_grad_l2:REDUCTION",
		"clock_cycle:unique":                   "NAME:REDUCTION",
		"batch/surprise":                       "",
		"time/lunch":                           "",
		"env/all/correct/ci95_low":             "",
		"surprise":                             "",
	} {
		d, ok := Describe(name)
		if d.Name != want || ok != (want != "") {
			t.Errorf("Describe(%q) is %q, %v; want %q", name, d.Name, ok, want)
		}
	}
}

// TestDescriptions checks that each name is described once and in sentences.
func TestDescriptions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Descriptions {
		if seen[d.Name] {
			t.Errorf("%s is described twice", d.Name)
		}
		seen[d.Name] = true
		for _, text := range []string{d.Meaning, d.Good, d.Bad} {
			if text != "" && !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q does not end with a period", d.Name, text)
			}
		}
		if d.Unit == "" || d.Meaning == "" {
			t.Errorf("%s has the unit %q and the meaning %q, want both", d.Name, d.Unit, d.Meaning)
		}
	}
	for _, m := range contract.Metrics {
		if d, ok := Describe(m.Name); !ok || d.Name == "env/ENV/NAME" {
			t.Errorf("%s has no description of its own", m.Name)
		}
	}
}

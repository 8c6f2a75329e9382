// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

// TestSmallScenarios explores what takes seconds together; make model-check explores the rest.
func TestSmallScenarios(t *testing.T) {
	small := []string{
		"written/row", "written/foreign", "written/lag-parent", "written/lag-refill", "P/lag1/crash", "P/group2/crash",
		"P/group2/suspend", "minus/sampler-clean", "minus/run-filter", "minus/eval-keep", "with/eval-keep",
		"refill/any/tomb1", "refill/certain/tomb1", "no-store/crash", "unload/crash", "manager/written", "manager/P",
		"sampling/P", "wire/P", "wire/no-dedupe",
	}
	run := 0
	for _, sc := range scenarios() {
		if !slices.Contains(small, sc.Name) {
			continue
		}
		run++
		t.Run(sc.Name, func(t *testing.T) {
			if difference := sc.compare(sc.Run(1_000_000)); difference != "" {
				t.Error(difference)
			}
		})
	}
	if run != len(small) {
		t.Errorf("%d of %d scenarios exist", run, len(small))
	}
}

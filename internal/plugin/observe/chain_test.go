// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
)

// TestChainIsShown checks that a run shows the run whose weights it begins with.
func TestChainIsShown(t *testing.T) {
	first := newRun("sft")
	next := newRun("rl", func(run *v1alpha1.TrainingRun) {
		run.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: "sft"}}
	})
	of := func(runs ...v1alpha1.TrainingRun) snapshot {
		return snapshot{at: start, runs: runs, history: &history.History{}}
	}
	top := overview(of(*first, *next))
	if got := []string{top.Header[1], top.Rows[0][1], top.Rows[1][1]}; !slices.Equal(got, []string{"FROM", "", "sft"}) {
		t.Errorf("top has the column %q, want FROM with sft in the row of rl", got)
	}
	if alone := overview(of(*first)); slices.Contains(alone.Header, "FROM") {
		t.Errorf("top has %q, want no column FROM without a chain", alone.Header)
	}
	if screen := runScreen(of(*next), 100); !strings.Contains(screen, "the weights of sft") {
		t.Errorf("the screen of rl does not name sft:\n%s", screen)
	}
	result, err := tabulate([]compared{{run: *first, history: rising(4)}, {run: *next, history: rising(4)}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(result.Rows, func(row []string) bool {
		return strings.HasSuffix(row[0], "initFrom.runRef.name") && row[2] == "sft"
	}) {
		t.Errorf("compare has the rows %q, want one with initFrom.runRef.name", result.Rows)
	}
}

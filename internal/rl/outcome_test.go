// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "testing"

func TestOutcomesAndKindsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for o := Usable; o <= Filtered; o++ {
		if o.IsValid() != (o <= InvalidTokens) || o.String() == "" || names[o.String()] {
			t.Errorf("outcome %d is called %q", uint8(o), o)
		}
		names[o.String()] = true
	}
	if got := (Filtered + 1).String(); got != "Outcome(12)" {
		t.Errorf("an unknown outcome is called %s", got)
	}
	if Train.String() != "train" || Evaluate.String() != "evaluate" {
		t.Errorf("kinds are called %s and %s", Train, Evaluate)
	}
}

func TestUsableMembersAreThoseThatCount(t *testing.T) {
	for outcome, want := range map[Outcome]int{Usable: 2, Constant: 2, BelowFloor: 0, Deadline: 0, InvalidTokens: 0} {
		g := exampleGroup()
		g.Outcome = outcome
		if got := len(g.UsableMembers()); got != want {
			t.Errorf("%s: %d members count, want %d", outcome, got, want)
		}
	}
}

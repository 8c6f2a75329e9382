// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "testing"

func TestOutcomesAndKindsHaveNames(t *testing.T) {
	for o := Usable; o <= InvalidTokens; o++ {
		text, err := o.MarshalText()
		if err != nil || !o.IsValid() || string(text) != o.String() {
			t.Errorf("outcome %d: %q, %v, called %s", uint8(o), text, err, o)
		}
		var back Outcome
		if err := back.UnmarshalText(text); err != nil || back != o {
			t.Errorf("%q was read as %s, %v", text, back, err)
		}
	}
	if got := (InvalidTokens + 1).String(); got != "Outcome(7)" {
		t.Errorf("an outcome that is none is called %s", got)
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

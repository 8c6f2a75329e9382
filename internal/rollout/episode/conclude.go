// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// conclude makes a group of its members. The reasons are why members are not usable.
func conclude(spec Spec, members []rl.Member, reasons []string) rl.Group {
	group := rl.Group{Key: spec.Key, Environment: spec.Settings.Name, Members: members}
	outcome, reason := outcomeOfGroup(spec, members, reasons)
	if outcome == rl.Usable {
		return group
	}
	return group.Tombstone(outcome, reason)
}

// outcomeOfGroup decides the outcome of a group with these members. A group that lacks members for a single
// cause has that outcome, and otherwise BelowFloor.
func outcomeOfGroup(spec Spec, members []rl.Member, reasons []string) (rl.Outcome, string) {
	usable, cause, first := 0, rl.Usable, -1
	for i, m := range members {
		switch {
		case m.Outcome == rl.Usable:
			usable++
			continue
		case first < 0:
			cause, first = m.Outcome, i
		case m.Outcome != cause:
			cause = rl.BelowFloor
		}
	}
	if usable < spec.MinMembers && first >= 0 {
		return cause, fmt.Sprintf("%d of %d members are usable, %d are needed; member %d: %s",
			usable, len(members), spec.MinMembers, members[first].Index, reasons[first])
	}
	return rl.Usable, ""
}

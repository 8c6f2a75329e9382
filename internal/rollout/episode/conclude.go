// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// conclude makes a group of its members. reasons says why members are not usable.
func conclude(spec Spec, members []rl.Member, reasons []string) rl.Group {
	group := rl.Group{Key: spec.Key, Environment: spec.Settings.Name, Members: members}
	outcome, reason := outcomeOfGroup(spec, members, reasons)
	if outcome == rl.Usable {
		group.Reason = reason
		return group
	}
	return group.Tombstone(outcome, reason)
}

// outcomeOfGroup decides the outcome of a group with these members. A group with too few usable members has the
// outcome of the other members if these have the same outcome, and otherwise BelowFloor. The reason names the task
// and the first member with a fault, or else the first member that is not usable. A usable group may have a reason as
// well.
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
	if first < 0 {
		return rl.Usable, ""
	}
	isFault := func(m rl.Member) bool { return m.Outcome == rl.EnvironmentFault || m.Outcome == rl.JudgeFault }
	if fault := slices.IndexFunc(members, isFault); fault >= 0 {
		first = fault
	}
	reason := fmt.Sprintf("task %d of split %s, member %d: %s", spec.Task, spec.Split, members[first].Index,
		reasons[first])
	if usable < spec.MinMembers {
		return cause, fmt.Sprintf("%d of %d members are usable, %d are needed; %s", usable, len(members), spec.MinMembers,
			reason)
	}
	return rl.Usable, reason
}

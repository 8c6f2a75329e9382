// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

var outcomeNames = [...]string{
	Usable: "Usable", BelowFloor: "BelowFloor", Constant: "Constant", EnvironmentFault: "EnvironmentFault",
	JudgeFault: "JudgeFault", Deadline: "Deadline", InvalidTokens: "InvalidTokens",
	NoWeight: "NoWeight", NotRendered: "NotRendered", TooLong: "TooLong", Empty: "Empty",
	Filtered: "Filtered",
}

// IsValid reports whether o is an outcome of a group that a worker played. Outcomes of rows are not valid.
func (o Outcome) IsValid() bool { return o <= InvalidTokens }

// String returns the outcome's name, such as BelowFloor.
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomeNames[o]
}

// String returns train or evaluate.
func (k Kind) String() string {
	if k == Evaluate {
		return "evaluate"
	}
	return "train"
}

// UsableMembers returns the members that count, in the order of their indexes. A group whose own outcome is neither
// Usable nor Constant has none.
func (g Group) UsableMembers() []Member {
	if g.Outcome != Usable && g.Outcome != Constant {
		return nil
	}
	members := make([]Member, 0, len(g.Members))
	for _, m := range g.Members {
		if m.Outcome == Usable {
			members = append(members, m)
		}
	}
	slices.SortStableFunc(members, func(a, b Member) int { return cmp.Compare(a.Index, b.Index) })
	return members
}

// Roles lists the roles of the group's trajectories, sorted.
func (g Group) Roles() []string {
	roles := map[string]bool{}
	for _, m := range g.Members {
		for _, t := range m.Trajectories {
			roles[t.Role] = true
		}
	}
	return slices.Sorted(maps.Keys(roles))
}

// Tombstone returns the group under an outcome that leaves it out, without its segments. Rewards, metrics and tokens
// stay, to be counted.
func (g Group) Tombstone(outcome Outcome, reason string) Group {
	g.Outcome, g.Reason = outcome, reason
	return g.WithoutSegments()
}

// WithoutSegments returns the group without the segments, which only training needs.
func (g Group) WithoutSegments() Group {
	g.Members = slices.Clone(g.Members)
	for i := range g.Members {
		trajectories := slices.Clone(g.Members[i].Trajectories)
		for j := range trajectories {
			trajectories[j].Segments = nil
		}
		g.Members[i].Trajectories = trajectories
	}
	return g
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"regexp"
	"slices"
)

// MaxRoles bounds the roles of an algorithm, and the roles in one group.
const MaxRoles = 16

// RoleRule describes valid names of roles, which are parts of the names of metrics, and keys of lists.
const RoleRule = "a role has at most 63 lower-case letters, digits, hyphens and underscores, and begins with a letter"

// Roles returns the roles of the conversations of an episode, sorted. It is nil for an environment of one conversation,
// whose role has no name.
func (d Definition) Roles() []string {
	switch i := d.Interaction; {
	case i == nil:
		return nil
	case i.SolverJudge != nil:
		return []string{"judge", "solver"}
	case i.SelfRefine != nil:
		return []string{"critique", "draft", "revision"}
	case i.Python != nil:
		return slices.Sorted(slices.Values(i.Python.Roles))
	case i.Agent != nil:
		return slices.Sorted(slices.Values(i.Agent.Roles))
	default:
		return nil
	}
}

var roleName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// IsRole reports whether a name is valid for a role. The empty name is the only role of a simple environment.
func IsRole(name string) bool { return name == "" || roleName.MatchString(name) }

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"
	"testing"
)

// rolesOf are roles with the advantage and the loss of the algorithm.
func rolesOf(f *RunFile, names ...string) []Role {
	var roles []Role
	for _, name := range names {
		roles = append(roles, Role{Name: name, Advantage: f.Fixed.Algorithm.Advantage, Loss: f.Fixed.Algorithm.Loss})
	}
	return roles
}

func TestValidateNamesTheFieldOfARole(t *testing.T) {
	checkFields(t, map[string]func(f *RunFile){
		"fixed.algorithm.grouping":      func(f *RunFile) { f.Fixed.Algorithm.Grouping = "Trajectory" },
		"fixed.algorithm.roles[0].name": func(f *RunFile) { f.Fixed.Algorithm.Roles = rolesOf(f, "") },
		"fixed.algorithm.roles[1].name": func(f *RunFile) { f.Fixed.Algorithm.Roles = rolesOf(f, "solver", "judge") },
		"fixed.algorithm.roles[2].name": func(f *RunFile) { f.Fixed.Algorithm.Roles = rolesOf(f, "a", "b", "b") },
		"fixed.algorithm.roles has": func(f *RunFile) {
			f.Fixed.Algorithm.Roles = rolesOf(f, strings.Split("a b c d e f g h i j k l m n o p q", " ")...)
		},
		"fixed.algorithm.roles[0].advantage.scale": func(f *RunFile) {
			f.Fixed.Algorithm.Roles = rolesOf(f, "a")
			f.Fixed.Algorithm.Roles[0].Advantage.Scale = "Std"
		},
		"fixed.algorithm.roles[0].loss.config": func(f *RunFile) {
			f.Fixed.Algorithm.Roles = rolesOf(f, "a")
			f.Fixed.Algorithm.Roles[0].Loss = Loss{Name: LossPPO}
		},
		"fixed.algorithm.roles[0].loss must be ppo or cispo": func(f *RunFile) {
			f.Fixed.Algorithm.Lag, f.Fixed.Algorithm.Roles = 1, rolesOf(f, "a")
		},
	})
}

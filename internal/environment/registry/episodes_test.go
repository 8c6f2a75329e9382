// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// playing returns a definition whose episodes are code.
func playing(roles ...string) contract.Definition {
	definition := arithmetic(9)
	definition.Reward = nil
	definition.Interaction = &environment.Interaction{Python: &environment.PythonEpisodes{
		Source: environment.Source{Code: "async def episode(row, policy, seed): return 1"}, Roles: roles, Processes: 1,
		Concurrency: 1,
	}}
	return definition
}

func TestDefinitionsWithEpisodes(t *testing.T) {
	definition := playing("solver", "judge")
	if err := definition.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	if diff := cmp.Diff([]string{"judge", "solver"}, definition.Roles()); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	if definition.HasSharedPrompts() || definition.ProgramID() == "" {
		t.Errorf("shared prompts %v, program %q", definition.HasSharedPrompts(), definition.ProgramID())
	}
	if id := playing().ProgramID(); id == definition.ProgramID() {
		t.Errorf("code with other roles has the same program %s", id)
	}
	rewarded := playing()
	rewarded.Reward = arithmetic(9).Reward
	if err := rewarded.Validate(); err == nil || !strings.Contains(err.Error(), "with reward or interaction.python") {
		t.Errorf("Validate of a definition with a reward as well: %v, want that it has one of both", err)
	}
	var wrong *DefinitionError
	if _, err := (Builder{}).Build(t.Context(), definition); !errors.As(err, &wrong) || !errors.Is(err, errNoFunctions) {
		t.Errorf("Build without programs: %v, want %v", err, errNoFunctions)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

func withTests(memory string, isolation *environment.Isolation) Definition {
	tests := &environment.Tests{Language: environment.TestPython, Memory: memory}
	return Definition{
		Reward:    &environment.Reward{RewardRule: environment.RewardRule{Tests: tests}},
		Execution: &Execution{FunctionImage: environment.FunctionImage{Isolation: isolation}, SandboxBytes: 1 << 30},
	}
}

// TestSandboxID checks that programs of equal settings share one container, whatever their tests, and that a definition
// without programs has none.
func TestSandboxID(t *testing.T) {
	first := withTests("256Mi", nil)
	if id := first.SandboxID(); len(id) != 16 || id != withTests("1Gi", nil).SandboxID() {
		t.Errorf("got %q and %q, want the same", id, withTests("1Gi", nil).SandboxID())
	}
	other := withTests("256Mi", &environment.Isolation{Minimum: environment.IsolationProcess})
	if first.SandboxID() == other.SandboxID() {
		t.Errorf("another isolation shares the container: got %v for both", first.SandboxID())
	}
	if id := (Definition{Reward: exactMatch()}).SandboxID(); id != "" {
		t.Errorf("without programs: got %q", id)
	}
	if first.ProgramID() != "" {
		t.Errorf("programs of a policy are functions: got %q, want none", first.ProgramID())
	}
}

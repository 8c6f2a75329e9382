// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// scored returns a definition whose reward is a function.
func scored(change func(*Definition, *environment.Python)) Definition {
	function := &environment.Python{Source: environment.Source{Code: "def reward(row, reply): return 1"}, Processes: 2,
		Concurrency:    64,
		TimeoutSeconds: 60}
	d := Definition{Dataset: arithmeticData(9), Execution: &Execution{},
		Reward: &environment.Reward{RewardRule: environment.RewardRule{Python: function}}}
	if change != nil {
		change(&d, function)
	}
	return d
}

// TestProgramsAreNamedByWhatTheyAre compares the names of runners in a pod.
func TestProgramsAreNamedByWhatTheyAre(t *testing.T) {
	same := scored(nil).ProgramID()
	cases := map[string]struct {
		change func(*Definition, *environment.Python)
		equal  bool
	}{
		"other data":     {func(d *Definition, _ *environment.Python) { d.Dataset.Arithmetic.MaxOperand = 99 }, true},
		"other code":     {func(_ *Definition, f *environment.Python) { f.Code += "\n" }, false},
		"other limits":   {func(d *Definition, _ *environment.Python) { d.Execution.ProcessBytes = 1 }, false},
		"another image":  {func(d *Definition, _ *environment.Python) { d.Execution.Image = "own" }, false},
		"other settings": {func(d *Definition, _ *environment.Python) { d.Execution.Env = json.RawMessage(`[]`) }, false},
	}
	for name, tc := range cases {
		if got := scored(tc.change).ProgramID(); (got == same) != tc.equal || len(got) != 16 {
			t.Errorf("%s: got %q beside %q, want equal names: %v", name, got, same, tc.equal)
		}
	}
	if got := (Definition{Reward: exactMatch()}).ProgramID(); got != "" {
		t.Errorf("without functions: got %q, want no name", got)
	}
	// An agent shares no runner with the functions beside it.
	played := scored(func(d *Definition, _ *environment.Python) {
		d.Interaction = &environment.Interaction{Agent: &environment.Agent{Command: []string{"x"}, Processes: 8}}
	})
	other := played
	other.Reward = exactMatch()
	if id := played.AgentID(); len(id) != 16 || id == played.ProgramID() || id != other.AgentID() {
		t.Errorf("the runner of an agent is %q beside %q of its reward, and %q with another reward", id, played.ProgramID(),
			other.AgentID())
	}
	if played.ProgramID() != same || other.ProgramID() != "" || scored(nil).AgentID() != "" {
		t.Errorf("functions beside an agent run at %q, want %q; without functions at %q, and an agent that is none at %q",
			played.ProgramID(), same, other.ProgramID(), scored(nil).AgentID())
	}
	// The path of a socket has at most 107 bytes.
	if socket := SocketOf(same); len(socket) > 107 {
		t.Errorf("the socket %s has %d bytes", socket, len(socket))
	}
}

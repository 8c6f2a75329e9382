// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// scored is a definition whose reward is a function.
func scored(change func(*Definition, *Python)) Definition {
	function := &Python{Code: "def reward(row, reply): return 1", Processes: 2, Concurrency: 64, TimeoutSeconds: 60}
	d := Definition{Dataset: &Dataset{Arithmetic: &Arithmetic{MaxOperand: 9}}, Reward: &RewardRule{Python: function}}
	if change != nil {
		change(&d, function)
	}
	return d
}

func TestFunctionsAreValidated(t *testing.T) {
	cases := map[string]struct {
		change func(*Definition, *Python)
		// names is what the error has; empty for none.
		names string
	}{
		"a function": {},
		"no code":    {func(_ *Definition, f *Python) { f.Code = "" }, "reward.python.code"},
		"code that is long": {func(_ *Definition, f *Python) { f.Code = strings.Repeat("é", 40<<10) },
			"at most 65536 bytes"},
		"no processes":   {func(_ *Definition, f *Python) { f.Processes = 0 }, "reward.python.processes"},
		"no concurrency": {func(_ *Definition, f *Python) { f.Concurrency = 0 }, "reward.python.concurrency"},
		"no time":        {func(_ *Definition, f *Python) { f.TimeoutSeconds = 0 }, "reward.python.timeoutSeconds"},
		"no number":      {func(_ *Definition, f *Python) { f.OnError = new(math.NaN()) }, "reward.python.onError"},
		"an execution":   {func(d *Definition, _ *Python) { d.Execution = &Execution{Image: "own"} }, ""},
		"a rule besides": {func(d *Definition, _ *Python) { d.Reward.Math = &Math{} }, "must be exactly one of"},
		"nothing to execute": {func(d *Definition, _ *Python) {
			d.Execution, d.Reward = &Execution{}, &RewardRule{Math: &Math{}}
		}, "needs reward.python"},
		"a function of a sum": {func(d *Definition, f *Python) {
			d.Reward = &RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1, Rule: RewardRule{Python: f}}}}
			f.Processes = 0
		}, "reward.weighted[0].python.processes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := scored(tc.change).Validate()
			if (err == nil) != (tc.names == "") || err != nil && !strings.Contains(err.Error(), tc.names) {
				t.Errorf("got %v, want an error with %q", err, tc.names)
			}
		})
	}
}

// TestProgramsAreNamedByWhatTheyAre compares the names of runners in a pod.
func TestProgramsAreNamedByWhatTheyAre(t *testing.T) {
	same := scored(nil).ProgramID()
	cases := map[string]struct {
		change func(*Definition, *Python)
		equal  bool
	}{
		"other data":     {func(d *Definition, _ *Python) { d.Dataset.Arithmetic.MaxOperand = 99 }, true},
		"other code":     {func(_ *Definition, f *Python) { f.Code += "\n" }, false},
		"other limits":   {func(_ *Definition, f *Python) { f.MemoryBytes = 1 }, false},
		"another image":  {func(d *Definition, _ *Python) { d.Execution = &Execution{Image: "own"} }, false},
		"other settings": {func(d *Definition, _ *Python) { d.Execution = &Execution{Env: json.RawMessage(`[]`)} }, false},
	}
	for name, tc := range cases {
		if got := scored(tc.change).ProgramID(); (got == same) != tc.equal || len(got) != 16 {
			t.Errorf("%s: got %q beside %q, want equal names: %v", name, got, same, tc.equal)
		}
	}
	if got := (Definition{Reward: &RewardRule{Math: &Math{}}}).ProgramID(); got != "" {
		t.Errorf("without functions: got %q, want no name", got)
	}
	// The path of a socket has at most 107 bytes.
	if socket := SocketOf(same); len(socket) > 107 {
		t.Errorf("the socket %s has %d bytes", socket, len(socket))
	}
}

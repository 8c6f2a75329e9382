// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package try_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// variables are those of a shell, with a key that functions do not get.
func variables(t *testing.T) map[string]string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no function of a user can run")
	}
	all := map[string]string{"TINKER_API_KEY": "tml-secret"}
	for _, name := range []string{"PATH", "PYENV_ROOT"} {
		all[name] = os.Getenv(name)
	}
	return all
}

// function is a RewardEnvironment with a function.
func function(code string) string {
	const begin = `
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: own}
spec:
  dataset: {arithmetic: {maxOperand: 99}}
  execution: {env: [{name: BONUS, value: "0.5"}]}
  reward:
    python:
      code: |
`
	return begin + "        " + strings.ReplaceAll(code, "\n", "\n        ") + "\n"
}

// TestTryCallsFunctions plays episodes whose reward is a function. It has the variables of the execution, and no key.
func TestTryCallsFunctions(t *testing.T) {
	const code = `import os
def reward(row, reply):
    assert "TINKER_API_KEY" not in os.environ
    return float(os.environ["BONUS"]) + len(row["answer"])`
	stdout, stderr, err := call(t, variables(t), function(code), "-f", "-", "--episodes", "2", "--max-tokens", "16", "-o",
		"json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var groups []transcript.Group
	if err := json.Unmarshal([]byte(stdout), &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, e := range g.Episodes {
			if e.Reward < 1.5 || e.Reward > 3.5 {
				t.Errorf("slot %d has the reward %v, want 0.5 and the digits of its answer", g.Slot, e.Reward)
			}
		}
	}
	if len(groups) != 2 {
		t.Errorf("%d episodes, want 2", len(groups))
	}
}

// TestTryScoresGroups plays groups of one episode, which a function scores as groups.
func TestTryScoresGroups(t *testing.T) {
	const code = `def rewards(row, replies):
    return [{'reward': 7 * len(replies), 'group': len(replies)} for _ in replies]`
	stdout, stderr, err := call(t, variables(t), function(code), "-f", "-", "--episodes", "2", "--max-tokens", "16", "-o",
		"json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var groups []transcript.Group
	if err := json.Unmarshal([]byte(stdout), &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, e := range g.Episodes {
			if e.Reward != 7*float64(len(g.Episodes)) {
				t.Errorf("slot %d has the reward %v, want 7 for each of its %d episodes", g.Slot, e.Reward, len(g.Episodes))
			}
		}
	}
	if !strings.Contains(stderr, "earns 14") { // the answer, and an empty reply
		t.Errorf("got %q, want what the answer earns in a group of two", stderr)
	}
}

// TestTryPlaysEpisodesOfCode plays the samples whose episodes are code.
func TestTryPlaysEpisodesOfCode(t *testing.T) {
	for sample, conversations := range map[string]int{"python-environment.yaml": 1, "self-play.yaml": 2} {
		t.Run(sample, func(t *testing.T) {
			stdout, stderr, err := call(t, variables(t), "", "-f", "../../../config/samples/"+sample, "--episodes", "4", "-o",
				"json")
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			var groups []transcript.Group
			if err := json.Unmarshal([]byte(stdout), &groups); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				for _, e := range g.Episodes {
					if e.Outcome != "Usable" || len(e.Conversations) != conversations {
						t.Errorf("slot %d has an episode %s with %d conversations, want %d (%s)", g.Slot, e.Outcome,
							len(e.Conversations), conversations, g.Reason)
					}
				}
			}
			if len(groups) != 4 {
				t.Errorf("%d episodes, want 4", len(groups))
			}
		})
	}
}

// TestTryTellsWhatIsWrongWithCode expects the line, and that nothing is played.
func TestTryTellsWhatIsWrongWithCode(t *testing.T) {
	for name, tc := range map[string]struct{ code, want string }{
		"syntax": {"def reward(row, reply):\n    return (", "(Invalid): building environment: user_code.py:2: SyntaxError"},
		"a row":  {"def reward(row, reply):\n    return row['solution']", "user_code.py:2: KeyError: 'solution'"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := call(t, variables(t), function(tc.code), "-f", "-")
			if err == nil || !strings.Contains(err.Error(), tc.want) || stdout != "" {
				t.Errorf("got %v and %q, want an error with %q", err, stdout, tc.want)
			}
		})
	}
}

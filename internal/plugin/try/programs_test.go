// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package try_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// variables returns the variables of a shell, with a key that functions do not get.
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

// function returns a RewardEnvironment with a function.
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

// TestTryCallsFunctions plays episodes whose reward is a function. The function has the variables of the execution, and
// no key.
func TestTryCallsFunctions(t *testing.T) {
	const code = `import os
def reward(row, reply):
    assert "TINKER_API_KEY" not in os.environ
    return float(os.environ["BONUS"]) + len(row["answer"])`
	file := strings.Replace(function(code), "execution: {", "execution: {requirements: [one==1.0, two==2.0], ", 1)
	stdout, stderr, err := call(t, variables(t), file, "-f", "-", "--episodes", "2", "--max-tokens", "16", "-o", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stderr, "pip install 'one==1.0' 'two==2.0'\n") {
		t.Errorf("the standard error does not name the packages that are not installed here:\n%s", stderr)
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

// TestTryFindsModulesOfThisFolder names the folders in PYTHONPATH relative to the folder in which the command runs.
func TestTryFindsModulesOfThisFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"here.py": "from there import one\ndef reward(row, reply): return one", "folder/there.py": "one = 1",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := variables(t)
	all["PYTHONPATH"] = ".:folder"
	code := "import here\ndef reward(row, reply): return here.reward(row, reply)"
	stdout, stderr, err := call(t, all, function(code), "-f", "-", "--episodes", "2", "--max-tokens", "16")
	if err != nil || !strings.Contains(stderr, "mean reward 1\n") {
		t.Errorf("got %v and %s%s, want the reward 1", err, stdout, stderr)
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
		t.Errorf("got %q, want the reward of the answer in a group of two", stderr)
	}
}

// TestTryPlaysEpisodesOfCode plays the samples whose episodes are code.
func TestTryPlaysEpisodesOfCode(t *testing.T) {
	for sample, conversations := range map[string]int{"python-environment.yaml": 1, "self-play.yaml": 2,
		"agent-branches.yaml": 3} {
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

// TestTryTellsWhatIsWrongWithCode checks that the error names the line, and that nothing is played.
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

// TestTryPlaysCommands plays an agent that is a command, which prints the policy's reply.
func TestTryPlaysCommands(t *testing.T) {
	const script = `import json, os, urllib.request
with open(os.environ["TASK_FILE"]) as file:
    task = json.load(file)
assert "answer" not in task, task
body = json.dumps({"model": "any", "max_tokens": 16, "messages": task["messages"]}).encode()
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {
    "Content-Type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]})
with urllib.request.urlopen(request) as response:
    print("".join(block["text"] for block in json.load(response)["content"]))
`
	manifest := map[string]any{
		"apiVersion": "rl.tinker-operator.dev/v1alpha1", "kind": "RewardEnvironment",
		"metadata": map[string]any{"name": "commands"},
		"spec": map[string]any{
			"dataset": map[string]any{"arithmetic": map[string]any{"maxOperand": 9}},
			"reward":  map[string]any{"exactMatch": map[string]any{}},
			"interaction": map[string]any{"agent": map[string]any{
				"command": []string{"python3", "-c", script}, "reward": map[string]any{"from": "Output"},
			}},
		},
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := call(t, variables(t), string(text), "-f", "-", "--episodes", "2", "--max-tokens", "16", "-o",
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
			if e.Outcome != "Usable" || len(e.Conversations) != 1 {
				t.Errorf("slot %d has an episode %s with %d conversations (%s)", g.Slot, e.Outcome, len(e.Conversations), g.Reason)
			}
		}
	}
	if len(groups) != 2 {
		t.Errorf("%d episodes, want 2", len(groups))
	}
}

// TestTrySandboxesRunVirtualEnvironments runs tests with the python3 of a virtual environment, which is a link.
func TestTrySandboxesRunVirtualEnvironments(t *testing.T) {
	all := variables(t)
	venv := t.TempDir()
	create := exec.CommandContext(t.Context(), "python3", "-m", "venv", "--without-pip", venv)
	if out, err := create.CombinedOutput(); err != nil {
		t.Skipf("python3 makes no virtual environment here: %v\n%s", err, out)
	}
	all["PATH"] = filepath.Join(venv, "bin") + string(filepath.ListSeparator) + all["PATH"]
	_, stderr, err := call(t, all, "", "-f", "../../../config/samples/code-tests.yaml", "--episodes", "1", "-o", "json")
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// TestTryReadsCodeOfConfigMaps calls a function of a ConfigMap in the file, and checks that the error names the repair
// if the file has no such ConfigMap. The chat template of the run's model is read in the same way.
func TestTryReadsCodeOfConfigMaps(t *testing.T) {
	object := strings.Replace(function("x"), "code: |\n        x", "configMapKeyRef: {name: functions, key: own.py}", 1)
	args := []string{"-f", "-", "--episodes", "1", "--max-tokens", "16", "-o", "json"}
	_, _, err := call(t, variables(t), object, args...)
	if err == nil || !strings.Contains(err.Error(), "spec.reward.python.configMapKeyRef") ||
		!strings.Contains(err.Error(), "--data functions=DIR") {
		t.Errorf("without the ConfigMap the error is %v, want one that names the field and --data", err)
	}
	const config = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: functions}
data:
  own.py: |
    def reward(row, reply):
        return 0.75
`
	stdout, stderr, err := call(t, variables(t), object+config, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stdout, "0.75") {
		t.Errorf("no episode has the reward of the ConfigMap's function:\n%s", stdout)
	}
}

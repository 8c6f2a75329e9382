// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try_test

import (
	"encoding/json"
	"strings"
	"testing"
)

const rowsSample = "../../../config/samples/sft.yaml"

// TestTryTrainsRows trains steps of a supervised run, whose workers and evaluation a trial leaves out.
func TestTryTrainsRows(t *testing.T) {
	stdout, stderr, err := call(t, nil, read(t, rowsSample), "-f", "-", "--steps", "2", "-o", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var steps []map[string]float64
	if err := json.Unmarshal([]byte(stdout), &steps); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[1]["batch/rows"] != 64 || steps[1]["train_mean_nll"] <= 0 {
		t.Errorf("the steps are %v, want 2 of 64 rows with their negative log-likelihood", steps)
	}
}

// TestTryNamesRowsThatCannotBeTrainedOn checks that a trial ends where a run would wait.
func TestTryNamesRowsThatCannotBeTrainedOn(t *testing.T) {
	sample := read(t, rowsSample)
	for name, tc := range map[string]struct {
		file string
		args []string
		want string
	}{
		"a column that is not there": {strings.Replace(sample, "fields: {completion: answer}",
			"fields: {completion: reply}", 1), nil, "the run would wait: "},
		"episodes": {sample, []string{"--episodes", "3"}, "trains on rows: leave them out"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := call(t, nil, tc.file, append([]string{"-f", "-"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// ownRows is a supervised run on the rows of a ConfigMap in the same file.
const ownRows = `apiVersion: v1
kind: ConfigMap
metadata: {name: rows}
data:
  rows.jsonl: |
    ROWS
---
apiVersion: rl.tinker-operator.dev/v1alpha1
kind: TrainingRun
metadata: {name: sft}
spec:
  mode: Supervise
  model: {name: tinkersim/byte-136k}
  tinker: {apiKeySecretKeyRef: {name: tinker, key: TINKER_API_KEY}}
  supervised:
    dataset:
      jsonl: {configMapRef: {name: rows}}
      splits: [{name: train, source: rows.jsonl}]
    batchSize: 2
    SETTINGS
  algorithm: {epochs: 1, optimizer: {learningRate: 1.0e-4}}
`

// TestTryReadsOwnRows trains on rows of each form, and checks that the error names the row, the field and the repair if
// none can be trained on.
func TestTryReadsOwnRows(t *testing.T) {
	const reply = `{"role": "assistant", "content": "4"}`
	long := strings.Repeat("x", 20000)
	for name, tc := range map[string]struct {
		row, settings string
		// says are parts of the error; if there are none, the rows are trained on.
		says []string
	}{
		"messages":              {row: `{"messages": [{"role": "user", "content": "2+2?"}, ` + reply + `]}`},
		"prompt and completion": {row: `{"prompt": "2+2?", "completion": "4"}`},
		"text":                  {row: `{"text": "Two and two is four."}`},
		"episode": {row: `{"episode": {"outcome": "Usable", "reward": 1, "conversations": [{"messages": ` +
			`[{"role": "user", "text": "q"}, {"role": "assistant", "text": "a"}]}]}}`},
		"cut": {row: `{"prompt": "q", "completion": "` + long + `"}`, settings: "maxTokens: 64"},
		"no reply": {row: `{"messages": [{"role": "user", "content": "2+2?"}]}`,
			says: []string{" of split train", "messages: none is the assistant's", "supervised.trainOn"}},
		"a role of no format": {row: `{"messages": [{"role": "critic", "content": "?"}, ` + reply + `]}`,
			says: []string{" of split train", `messages: rendering message 0 of role "critic"`,
				"the roles system, user and assistant", "model.renderer"}},
		"longer than the context": {row: `{"prompt": "q", "completion": "` + long + `"}`,
			says: []string{" of split train", "the model's context", "set supervised.maxTokens to at most 4096"}},
		"no known column": {row: `{"question": "q"}`, says: []string{" of split train", "its columns are question",
			"supervised.dataset.fields"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.NewReplacer("ROWS", tc.row+"\n    "+tc.row, "SETTINGS", tc.settings).Replace(ownRows)
			_, stderr, err := call(t, nil, file, "-f", "-", "--steps", "1")
			if len(tc.says) == 0 {
				if err != nil {
					t.Errorf("%v\n%s", err, stderr)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
		})
	}
}

// TestTrySaysWhyRowsAreLeftOut trains on one row of two.
func TestTrySaysWhyRowsAreLeftOut(t *testing.T) {
	rows := `{"prompt": "2+2?", "completion": "4"}` + "\n    " + `{"messages": [{"role": "user", "content": "?"}]}`
	file := strings.NewReplacer("ROWS", rows, "SETTINGS", "").Replace(ownRows)
	_, stderr, err := call(t, nil, file, "-f", "-", "--steps", "1")
	const want = "row 2 of split train is left out, and others for the same reason: messages: none is the assistant's"
	if err != nil || strings.Count(stderr, want) != 1 {
		t.Errorf("%v, and the standard error is\n%s\nwant %q once", err, stderr, want)
	}
}

// TestTrySaysHowToGiveRows tries a run with neither the ConfigMap nor the claim of its rows.
func TestTrySaysHowToGiveRows(t *testing.T) {
	_, run, _ := strings.Cut(strings.Replace(ownRows, "SETTINGS", "", 1), "---\n")
	for file, want := range map[string]string{
		run: "put the ConfigMap into the file, or give its files with --data rows=DIR",
		strings.Replace(run, "configMapRef: {name: rows}", "claimName: runs", 1): "give the claim's folder with " +
			"--data runs=DIR",
	} {
		if _, _, err := call(t, nil, file, "-f", "-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestTryTakesARunOfAChain checks that a file with several runs is refused, and that the error names the repair.
func TestTryTakesARunOfAChain(t *testing.T) {
	_, _, err := call(t, nil, read(t, "../../../config/samples/sft-then-rl.yaml"), "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "give the runs of a chain one by one") {
		t.Errorf("error is %v, want it to say that runs are given one by one", err)
	}
}

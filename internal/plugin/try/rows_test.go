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

// TestTryNamesRowsThatCannotBeTrainedOn ends in place of waiting.
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

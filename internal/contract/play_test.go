// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// examplePlay returns the value of testdata/play.v1.json.
func examplePlay(t *testing.T) Play {
	t.Helper()
	fixed := testFile(t).Fixed
	return Play{
		Version: 1, Model: fixed.Model, Environments: fixed.Environments,
		Evaluations: map[string][]Environment{strings.Repeat("ab", 32): fixed.Environments[:1]}, Concurrency: 48,
		StepRewards: true,
	}
}

// TestGoldenPlay shows that version 1 stays as it is.
func TestGoldenPlay(t *testing.T) {
	golden, err := os.ReadFile("testdata/play.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := EncodePlay(examplePlay(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(golden)), string(encoded)); diff != "" {
		t.Errorf("EncodePlay differs from version 1 (-golden +got):\n%s", diff)
	}
	got, err := DecodePlay(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(examplePlay(t), got); diff != "" {
		t.Errorf("DecodePlay (-want +got):\n%s", diff)
	}
}

func TestDecodePlayChecksTheVersion(t *testing.T) {
	cases := map[string]struct{ text, problem string }{
		"a field of a later build": {`{"version": 1, "concurrency": 3, "surprise": {"a": 1}}`, ""},
		"a later version": {
			`{"version": 2, "concurrency": "many"}`, "what the learner asks to play has version 2, and this worker reads " +
				"version 1"},
		"no version": {`{"concurrency": 3}`, "what the learner asks to play has version 0, and this worker reads version 1"},
		"no JSON":    {`{`, "unexpected end of JSON input"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play, err := DecodePlay([]byte(tc.text))
			if tc.problem == "" {
				if err != nil || play.Concurrency != 3 {
					t.Errorf("DecodePlay: %+v, %v", play, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("DecodePlay: %v, want %q", err, tc.problem)
			}
			if IsVersionError(err) != strings.Contains(tc.problem, "version") {
				t.Errorf("%v is reported as a version's: %t", err, IsVersionError(err))
			}
		})
	}
}

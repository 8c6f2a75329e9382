// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// examplePlay is what testdata/play.v1.json or play.v2.json says.
func examplePlay(t *testing.T, version int) Play {
	t.Helper()
	fixed := testFile(t).Fixed
	return Play{
		Version: version, Model: fixed.Model, BaseURL: fixed.BaseURL, Environments: fixed.Environments,
		Evaluations: map[string][]Environment{strings.Repeat("ab", 32): fixed.Environments[:1]}, Concurrency: 48,
		DropConstantGroups: version == 1, StepRewards: version > 1,
	}
}

func TestPlaysOfEachVersion(t *testing.T) {
	for version := 1; version <= FormatVersion; version++ {
		golden, err := os.ReadFile(fmt.Sprintf("testdata/play.v%d.json", version))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := EncodePlay(examplePlay(t, version))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(string(golden)), string(encoded)); diff != "" {
			t.Errorf("EncodePlay differs from version %d (-golden +got):\n%s", version, diff)
		}
		got, err := DecodePlay(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(examplePlay(t, version), got); diff != "" {
			t.Errorf("DecodePlay (-want +got):\n%s", diff)
		}
	}
}

func TestDecodePlayChecksTheVersion(t *testing.T) {
	cases := map[string]struct{ text, problem string }{
		"a field of a later build": {`{"version": 1, "concurrency": 3, "surprise": {"a": 1}}`, ""},
		"a later version": {
			`{"version": 3, "concurrency": "many"}`, "what the learner asks to play has version 3, and this worker reads " +
				"versions 1 and 2"},
		"no version": {`{"concurrency": 3}`, "what the learner asks to play has version 0, and this worker reads " +
			"versions 1 and 2"},
		"no JSON": {`{`, "unexpected end of JSON input"},
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

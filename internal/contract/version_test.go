// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"
)

func TestCheckVersion(t *testing.T) {
	cases := map[string]struct {
		got     int
		problem string
	}{
		"the own version": {FormatVersion, ""},
		"no version":      {0, "the exchange has version 0, and the learner reads version 1"},
		"a later version": {2, "the exchange has version 2, and the learner reads version 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckVersion("the exchange", tc.got, "the learner")
			if (err == nil) != (tc.problem == "") || err != nil && err.Error() != tc.problem {
				t.Errorf("CheckVersion: %v, want %q", err, tc.problem)
			}
			if IsVersionError(err) != (err != nil) {
				t.Errorf("%v is not reported as a version's", err)
			}
		})
	}
}

func TestCheckRunVersion(t *testing.T) {
	if err := CheckRunVersion("the stored group", 2, 2); err != nil {
		t.Errorf("the run's version: %v", err)
	}
	for _, got := range []int{0, 1, 3} {
		err := CheckRunVersion("the stored group", got, 2)
		want := fmt.Sprintf("the stored group has version %d, and the run has version 2", got)
		if !IsVersionError(err) || err.Error() != want {
			t.Errorf("CheckRunVersion: %v, want %q", err, want)
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"testing"
)

func TestAsFault(t *testing.T) {
	cause := errors.New("the judge is asleep")
	judge := &Fault{Kind: JudgeFault, Permanent: true, Err: cause}
	cases := map[string]struct {
		err       error
		kind      FaultKind
		permanent bool
	}{
		"a fault is itself":                 {err: judge, kind: JudgeFault, permanent: true},
		"a wrapped fault is found":          {err: fmt.Errorf("stepping: %w", judge), kind: JudgeFault, permanent: true},
		"any other error may pass":          {err: cause, kind: EnvironmentFault},
		"and keeps its cause for errors.Is": {err: fmt.Errorf("stepping: %w", cause), kind: EnvironmentFault},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := AsFault(tc.err)
			if got.Kind != tc.kind || got.Permanent != tc.permanent || !errors.Is(got, cause) {
				t.Errorf("AsFault = %+v, want kind %d, permanent %v, caused by %v", got, tc.kind, tc.permanent, cause)
			}
		})
	}
}

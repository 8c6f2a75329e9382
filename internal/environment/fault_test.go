// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"testing"
)

func TestAsFault(t *testing.T) {
	cause := errors.New("the judge does not answer")
	judge := &Fault{Kind: JudgeFault, Permanent: true, Err: cause}
	cases := map[string]struct {
		err       error
		kind      FaultKind
		permanent bool
	}{
		"a fault":         {err: judge, kind: JudgeFault, permanent: true},
		"a wrapped fault": {err: fmt.Errorf("stepping: %w", judge), kind: JudgeFault, permanent: true},
		"another error":   {err: cause, kind: EnvironmentFault},
		"a wrapped error": {err: fmt.Errorf("stepping: %w", cause), kind: EnvironmentFault},
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"testing"
	"time"
)

// TestHoldOfPolls checks the default time for which polls are held. No other test waits for that long.
func TestHoldOfPolls(t *testing.T) {
	if got := newSkyRL(nil, Options{}).options.PollHold; got != 5*time.Minute {
		t.Errorf("polls are held for %v, want five minutes as by SkyRL", got)
	}
}

func TestPassesAreForgottenInOrder(t *testing.T) {
	s := newSkyRL(nil, Options{})
	for i := range 3 * maxPasses {
		s.rememberPass(fmt.Sprint(i), pass{})
	}
	if len(s.passes) != maxPasses || len(s.passOrder) != maxPasses {
		t.Errorf("%d passes and %d ids are kept, want %d", len(s.passes), len(s.passOrder), maxPasses)
	}
	for id, want := range map[string]bool{fmt.Sprint(2*maxPasses - 1): false, fmt.Sprint(2 * maxPasses): true,
		fmt.Sprint(3*maxPasses - 1): true} {
		if _, kept := s.passes[id]; kept != want {
			t.Errorf("pass %s is kept: %v, want %v", id, kept, want)
		}
	}
}

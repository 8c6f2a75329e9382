// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// TestTriesAreAtMost30SecondsApart checks that the learner itself finds a repaired endpoint, hub or volume within that
// time, however long it waited before.
func TestTriesAreAtMost30SecondsApart(t *testing.T) {
	timing := Config{}.withDefaults().Timing
	cases := map[int]time.Duration{0: 0, 1: 500 * time.Millisecond, 2: time.Second, 6: 16 * time.Second,
		7: 30 * time.Second, 8: 30 * time.Second, 10_000: 30 * time.Second}
	for failures, want := range cases {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := timing.wait(t.Context(), failures); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited != want {
				t.Errorf("after %d failures the learner waits %v, want %v", failures, waited, want)
			}
		})
	}
}

// TestLearnerTriesForItsPatience always refuses the key. The learner ends as soon as KeyPatience is over, and not only
// at the end of a pause, since the pod that follows it is the first that reads the Secret again.
func TestLearnerTriesForItsPatience(t *testing.T) {
	timing := Config{}.withDefaults().Timing
	synctest.Test(t, func(t *testing.T) {
		began, refused := time.Now(), &client.Error{Category: tinker.CategoryUnauthorized}
		r := preflight.RepairWait{Status: report.NewStatus("uid", 1, time.Now), Patience: timing.KeyPatience, Now: time.Now}
		for failures := 1; r.Retries(refused); failures++ {
			if err := timing.waitAtMost(t.Context(), failures, r.Left(longestPause)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the learner tries for %v, want 30 s", took)
		}
	})
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestServerWithoutCapacityForAMinute refuses sessions for a minute: the episode begins once the server takes one, and
// the server is asked in growing intervals until then.
func TestServerWithoutCapacityForAMinute(t *testing.T) {
	cases := map[string]struct {
		create          time.Duration
		faults          int
		longest         time.Duration
		fewest, highest int
	}{
		"a session may take longer": {create: 2 * time.Minute, longest: 70 * time.Second, fewest: 8, highest: 12},
		// Each fault is reported to the health of the environment, and costs no try.
		"a session may take less": {create: 25 * time.Second, faults: 2, longest: 70 * time.Second, fewest: 12, highest: 20},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, refused, begun := newToolServer(), 0, time.Now()
				server.Before = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/create_session" || time.Since(begun) >= time.Minute {
						return false
					}
					refused++
					http.Error(w, "the server is at its maximum capacity", http.StatusTooManyRequests)
					return true
				}
				m, _, faults := playOnServer(t, server, ors.Options{CreateTimeout: tc.create},
					[]string{callOf("submit", `{"answer": "3"}`)}, nil)
				if m.Outcome != rl.Usable || m.Reward != 1 || m.Retries != 0 || faults != tc.faults {
					t.Errorf("the member ended as %v with reward %v and %d retries after %d faults, want a usable one with reward "+
						"1, no retry and %d faults",
						m.Outcome, m.Reward, m.Retries, faults, tc.faults)
				}
				if took := time.Since(begun); took > tc.longest {
					t.Errorf("the episode took %v, want %v at most", took, tc.longest)
				}
				if refused < tc.fewest || refused > tc.highest {
					t.Errorf("requests for a session were refused %d times, want from %d to %d times", refused, tc.fewest, tc.highest)
				}
			})
		})
	}
}

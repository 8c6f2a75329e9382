// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"errors"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestSettledGroupsAreAPrefixOfTheBatch receives groups out of order: one is settled when no slot before it is missing.
func TestSettledGroupsAreAPrefixOfTheBatch(t *testing.T) {
	f, _ := open(t, 0)
	tr := trainBy(t, f, rl.Rules{TasksPerStep: 3, Refill: true, Steps: 5})
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	slots(f, "w0", 64)
	submit(f, "w0", group(2, 4))
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if more, decided, err := tr.Settled(ended, 0); !errors.Is(err, why) || decided || len(more.Groups) > 0 {
		t.Errorf("a group behind a missing slot: %+v, %v, %v, want nothing", more, decided, err)
	}
	settled := func(taken int, want ...int64) {
		t.Helper()
		more, decided, err := tr.Settled(t.Context(), taken)
		if err != nil || decided {
			t.Fatalf("settled groups after %d: decided %v, %v", taken, decided, err)
		}
		var got []int64
		for i, g := range more.Groups {
			got = append(got, g.Key.Slot)
			expect(t, "digest", g.Digest(), more.Digests[i])
		}
		expect(t, "settled groups", want, got)
	}
	submit(f, "w0", group(0, 4).Tombstone(rl.Constant, ""))
	settled(0, 0)
	tr.refresh() // A fourth slot takes the place of the first.
	slots(f, "w0", 64)
	submit(f, "w0", group(1, 4))
	settled(0, 0, 1, 2)
	settled(1, 1, 2)
	submit(f, "w0", group(3, 4))
	if _, decided, err := tr.Settled(t.Context(), 3); !decided || err != nil {
		t.Errorf("the batch is decided: %v, %v", decided, err)
	}
}

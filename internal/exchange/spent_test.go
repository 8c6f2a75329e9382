// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestSpentComesWithTheGroupsThatHaveEnded submits a group and releases others. Each message has a number and the
// counters of its time, and names the groups for which no further requests are made.
func TestSpentComesWithTheGroupsThatHaveEnded(t *testing.T) {
	t.Parallel()
	l := newLearner()
	l.result = Accepted
	config := clientConfig(t, serve(t, "", epochOf(1), l, Timing{}).address)
	var messages atomic.Int64
	config.Spent = func() Spent {
		n := messages.Add(1)
		return Spent{
			Process: "p", Sequence: n, Used: spending.Usage{SampledTokens: 10 * n},
			Uncovered: spending.Usage{SampledTokens: n},
		}
	}
	a := runClient(t, config, newWorker())
	if _, err := a.Submit(t.Context(), encode(exampleGroup(4, 2, 8))); err != nil {
		t.Fatal(err)
	}
	for reason, slot := range map[string]int64{Drained: 5, SamplesUnanswered: 6} {
		if err := a.Release(t.Context(), []rl.Key{exampleKey(slot)}, reason); err != nil {
			t.Fatal(err)
		}
		take(t, "release", l.released)
	}
	ended := map[rl.Key]bool{}
	for n := range int64(3) {
		want := Spent{
			Process: "p", Sequence: n + 1, Used: spending.Usage{SampledTokens: 10 * (n + 1)},
			Uncovered: spending.Usage{SampledTokens: n + 1},
		}
		if diff := cmp.Diff(want, take(t, "report", l.spent)); diff != "" {
			t.Errorf("report %d (-want +got):\n%s", n, diff)
		}
		for _, key := range take(t, "ended groups", l.ended) {
			ended[key] = true
		}
	}
	if diff := cmp.Diff(map[rl.Key]bool{exampleKey(4): true, exampleKey(5): true}, ended); diff != "" {
		t.Errorf("ended groups (-want +got):\n%s", diff)
	}
}

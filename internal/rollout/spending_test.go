// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// TestWhatIsListedOfGroups checks which groups are listed to learners: all groups with Hello, and the groups that have
// used more with renewals. A group that is covered is listed once more.
func TestWhatIsListedOfGroups(t *testing.T) {
	meter := client.NewMeter(client.MeterConfig{})
	s := NewSpending(meter)
	use := func(slot, tokens int64) {
		meter.Add(spending.Usage{SampledTokens: tokens}, s.account(trainKey(slot)))
	}
	check := func(what string, got []exchange.GroupSpent, want map[int64]int64) {
		t.Helper()
		listed := map[int64]int64{}
		for _, group := range got {
			listed[group.Key.Slot] = group.Used.SampledTokens
		}
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	renewed := func() []exchange.GroupSpent {
		var renewal exchange.Renewal
		s.report(&renewal, nil)
		return renewal.Groups
	}
	greeted := func() []exchange.GroupSpent {
		var request exchange.HelloRequest
		s.hello(&request)
		return request.Groups
	}
	use(1, 5)
	use(2, 6)
	check("Hello", greeted(), map[int64]int64{1: 5, 2: 6})
	use(2, 1)
	use(3, 0)
	check("a renewal", renewed(), map[int64]int64{2: 7, 3: 0})
	check("a renewal without news", renewed(), map[int64]int64{})
	use(1, 2)
	s.cover(2, nil)
	use(2, 1)
	check("a covered group with news", renewed(), map[int64]int64{1: 7, 2: 8})
	check("Hello to another learner", greeted(), map[int64]int64{2: 8, 3: 0})
	if got := s.Spent(); got.Used.SampledTokens != 15 || got.Uncovered.SampledTokens != 8 {
		t.Errorf("%d tokens are sampled, and %d of them uncovered, want 15 and 8", got.Used.SampledTokens,
			got.Uncovered.SampledTokens)
	}
}

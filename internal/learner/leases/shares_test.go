// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// evaluationLeases returns count groups of an evaluation, with size episodes each.
func evaluationLeases(count, size int) []exchange.Lease {
	var list []exchange.Lease
	for slot := range int64(count) {
		list = append(list, exchange.Lease{
			Key:         rl.Key{Kind: rl.Evaluate, Slot: slot, Lineage: lineage, Evaluation: "e"},
			Environment: "e", GroupSize: size, MinMembers: 1,
		})
	}
	return list
}

// sharedTable returns an open table with one worker, w0.
func sharedTable(t *testing.T, share float64, concurrency int) *fixture {
	t.Helper()
	f := newFixture(Config{
		Concurrency: concurrency, EvaluationShare: share, Silence: 30 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(1000, 0) },
	})
	f.Open()
	hello(t, f, "w0", exchange.HelloRequest{})
	return f
}

// order returns a letter for each group that is leased, in order: t for training, e for evaluations.
func order(f *fixture, free int) string {
	return kinds(f.grant("w0", free))
}

func kinds(granted []exchange.Lease) string {
	var order strings.Builder
	for _, l := range granted {
		if l.Key.Kind == rl.Evaluate {
			order.WriteByte('e')
		} else {
			order.WriteByte('t')
		}
	}
	return order.String()
}

// TestEvaluationShare leases six groups of training, of four episodes each, beside an evaluation.
func TestEvaluationShare(t *testing.T) {
	cases := map[string]struct {
		share       float64
		count, size int
		want        string
	}{
		"a fifth of the episodes":                   {0.2, 9, 1, "tetetetetete" + "eee"},
		"a fifth, in groups of two":                 {0.2, 4, 2, "tettettete"},
		"a fifth, in groups of more than is due":    {0.2, 2, 16, "te" + "ttttt" + "e"},
		"half of the episodes":                      {0.5, 14, 2, "teeteeteeteeteetee" + "ee"},
		"half, which an evaluation does not need":   {0.5, 3, 2, "teete" + "tttt"},
		"what training leaves":                      {0, 3, 1, "tttttt" + "eee"},
		"all that is needed, before other training": {1, 3, 1, "teee" + "ttttt"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := sharedTable(t, tc.share, 1024)
			f.Demand("train", leases(0, 1, 2, 3, 4, 5))
			f.Demand("evaluation", evaluationLeases(tc.count, tc.size))
			expect(t, "order", tc.want, order(f, 1024))
		})
	}
}

// TestEvaluationShareOfSingleGroups leases one group at a time, since there is no room for a second one.
func TestEvaluationShareOfSingleGroups(t *testing.T) {
	f := sharedTable(t, 0.2, 4)
	f.Demand("train", leases(0, 1, 2, 3, 4, 5))
	f.Demand("evaluation", evaluationLeases(4, 4))
	got := ""
	for range 10 {
		granted := f.grant("w0", 64)
		if len(granted) != 1 {
			t.Fatalf("%d groups are leased after %q, want 1", len(granted), got)
		}
		got += kinds(granted)
		g := group(granted[0].Key.Slot, 4)
		g.Key = granted[0].Key
		expect(t, "reply", exchange.Accepted, submit(f, "w0", g).Status)
	}
	// The first evaluation group of four episodes is due after the first group of training, and the next one after four
	// more. Training has no groups left before the last two.
	expect(t, "order", "tettttetee", got)
}

// TestEvaluationShareIsNotSaved leases only training while no evaluation waits. An evaluation that comes later has its
// share only from then on.
func TestEvaluationShareIsNotSaved(t *testing.T) {
	f := sharedTable(t, 0.2, 1024)
	f.Demand("train", leases(0, 1, 2, 3, 4, 5))
	expect(t, "training alone", "tttt", order(f, 16))
	f.Demand("evaluation", evaluationLeases(4, 1))
	expect(t, "both", "tete"+"ee", order(f, 1024))
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"errors"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func train(t *testing.T, f *fixture, lag int) *BatchSource {
	t.Helper()
	stream, err := rl.NewStream(1, []rl.Source{{Environment: "e", Split: "train", Tasks: 100, Shuffle: true}})
	if err != nil {
		t.Fatal(err)
	}
	tr := NewBatchSource(f.Table, BatchConfig{
		Rules: rl.Rules{TasksPerStep: 2, Refill: true, Lag: lag, Steps: 5}, Stream: stream,
		Groups: map[string]GroupShape{"e": {Size: 4, MinMembers: 2}},
	})
	hello(t, f, "w0", exchange.HelloRequest{})
	return tr
}

func TestABatchIsTheNextUsableSlots(t *testing.T) {
	f, _ := open(t, 0)
	tr := train(t, f, 0)
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	expect(t, "the batch", []int64{0, 1}, slots(f, "w0", 64))
	submit(f, "w0", group(1, 4))
	submit(f, "w0", group(0, 4).Tombstone(rl.Constant, ""))
	tr.refresh()
	expect(t, "a slot in place of the dropped one", []int64{2}, slots(f, "w0", 64))
	submit(f, "w0", group(2, 4))
	batch, err := tr.Batch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "members", []int64{1, 2}, batch.Slots.Members)
	expect(t, "end", rl.Position{Step: 1, Cursor: 3}, batch.Slots.End())
	expect(t, "manifest", 3, len(batch.Manifest().Slots))
	tr.refresh()
	expect(t, "nothing of the next version before it is announced", []int64{}, slots(f, "w0", 64))
	next := lineage.Next(batch.Manifest(), rl.Settings{})
	tr.Announce(Version{Step: 1, Lineage: next, Sampler: "s1"})
	tr.Advance(batch.Slots.End())
	granted := f.grant("w0", 64)
	expect(t, "the next batch", []string{"s1", "s1"}, []string{granted[0].Sampler, granted[1].Sampler})
	expect(t, "its first slot", int64(3), granted[0].Key.Slot)
}

func TestWithALagTheNextBatchIsLeasedOnceThisOneIsCertain(t *testing.T) {
	f, _ := open(t, 0)
	tr := train(t, f, 1)
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	expect(t, "the first batch", []int64{0, 1}, slots(f, "w0", 64))
	submit(f, "w0", group(0, 4))
	tr.refresh()
	expect(t, "its end is open", []int64{}, slots(f, "w0", 64))
	submit(f, "w0", group(1, 4))
	tr.refresh()
	granted := f.grant("w0", 64)
	expect(t, "the second, by the same version", []string{"s0", "s0"}, []string{granted[0].Sampler, granted[1].Sampler})
}

func TestBatchEndsEarly(t *testing.T) {
	f, _ := open(t, 0)
	tr := train(t, f, 0)
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	slots(f, "w0", 64)
	f.Release("w0", []rl.Key{key(0)}, "policy_gone")
	if _, err := tr.Batch(t.Context()); !errors.Is(err, ErrPolicyMissing) {
		t.Errorf("Batch without sampler weights: %v, want ErrPolicyMissing", err)
	}
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "saved anew"}})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := tr.Batch(ctx); !errors.Is(err, why) {
		t.Errorf("Batch after the context ended: %v, want its cause", err)
	}
}

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
	return trainBy(t, f, rl.Rules{TasksPerStep: 2, Refill: true, Lag: lag, Steps: 5})
}

func trainBy(t *testing.T, f *fixture, rules rl.Rules) *BatchSource {
	t.Helper()
	stream, err := rl.NewStream(1, []rl.Source{{Environment: "e", Split: "train", Tasks: 100, Shuffle: true}})
	if err != nil {
		t.Fatal(err)
	}
	tr := NewBatchSource(f.Table, BatchConfig{
		Rules: rules, Stream: stream,
		Groups: map[string]GroupShape{"e": {Size: 4, MinMembers: 2}},
	})
	hello(t, f, "w0", exchange.HelloRequest{})
	return tr
}

func TestBatchHasTheNextUsableSlots(t *testing.T) {
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
	expect(t, "end", rl.Position{Step: 1, Cursor: 3}, batch.After)
	expect(t, "manifest", 3, len(batch.Manifest().Slots))
	tr.refresh()
	expect(t, "nothing of the next version before it is announced", []int64{}, slots(f, "w0", 64))
	next := lineage.Next(batch.Manifest(), rl.Settings{})
	tr.Announce(Version{Step: 1, Lineage: next, Sampler: "s1"})
	tr.Advance(batch.After)
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

func TestWithOwnSlotsTheNextBatchIsLeasedAtOnce(t *testing.T) {
	f, _ := open(t, 0)
	tr := trainBy(t, f, rl.Rules{TasksPerStep: 2, Refill: true, OwnSlots: true, Lag: 1, Steps: 5})
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	expect(t, "the batches of two steps", []int64{0, 1, 8, 9}, slots(f, "w0", 64))
	submit(f, "w0", group(8, 4))
	submit(f, "w0", group(0, 4).Tombstone(rl.Constant, ""))
	tr.refresh()
	expect(t, "a slot of the step in place of the dropped one", []int64{2}, slots(f, "w0", 64))
	submit(f, "w0", group(1, 4))
	submit(f, "w0", group(2, 4))
	batch, err := tr.Batch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "members", []int64{1, 2}, batch.Slots.Members)
	expect(t, "manifest", 3, len(batch.Manifest().Slots))
	expect(t, "after", rl.Position{Step: 1, Cursor: 8}, batch.After)
	tr.Announce(Version{Step: 1, Lineage: lineage.Next(batch.Manifest(), rl.Settings{}), Sampler: "s1"})
	tr.Advance(batch.After)
	granted := f.grant("w0", 64)
	expect(t, "the batch after the next, by the new version", []string{"s1", "s1"},
		[]string{granted[0].Sampler, granted[1].Sampler})
	expect(t, "its first slot", int64(16), granted[0].Key.Slot)
}

// TestTaskOfALease checks that Task and the lease of a slot name the same task. The steps have slots of their own, so
// the later slots play tasks with other numbers.
func TestTaskOfALease(t *testing.T) {
	f, _ := open(t, 0)
	tr := trainBy(t, f, rl.Rules{TasksPerStep: 2, Refill: true, OwnSlots: true, Lag: 1, Steps: 5})
	tr.Reset(rl.Position{}, []Version{{Lineage: lineage, Sampler: "s0"}})
	granted := f.grant("w0", 64)
	expect(t, "leases", 4, len(granted))
	for _, lease := range granted {
		expect(t, "task", rl.Task{Environment: lease.Environment, Split: lease.Split, Index: lease.Task},
			tr.Task(lease.Key.Slot))
	}
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
)

// numbered loads rows whose datum is their index. The unusable rows fail.
func numbered(unusable ...int64) supervised.Load {
	return func(_ context.Context, task rl.Task) (supervised.Datum, error) {
		if slices.Contains(unusable, task.Index) {
			return supervised.Datum{}, &supervised.Unusable{Reason: supervised.NoWeight, Err: errors.New("no reply")}
		}
		return supervised.Datum{Tokens: []int32{int32(task.Index)}}, nil
	}
}

func newBatches(t testing.TB, rows int64, size int) supervised.Batches {
	t.Helper()
	stream, err := rl.NewStream(7, []rl.Source{{Environment: "data", Split: "train", Tasks: rows, Shuffle: true}})
	if err != nil {
		t.Fatal(err)
	}
	return supervised.Batches{Stream: stream, Size: size}
}

func TestBatchesTakeTheNextUsableRows(t *testing.T) {
	b := newBatches(t, 10, 4)
	var order []int64
	for slot := range int64(30) {
		order = append(order, b.Stream.Task(slot).Index)
	}
	bad := []int64{order[1], order[5]}
	var want []int64
	for _, index := range order {
		if !slices.Contains(bad, index) {
			want = append(want, index)
		}
	}
	var got []int64
	cursor, tombstones := int64(0), 0
	for range 5 {
		batch, err := b.Next(t.Context(), cursor, numbered(bad...))
		if err != nil || batch.First != cursor || len(batch.Datums) != 4 || len(batch.Slots) != 4 {
			t.Fatalf("Next(%d) = %+v, %v", cursor, batch, err)
		}
		again, err := b.Next(t.Context(), cursor, numbered(bad...))
		sameText := cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })
		if diff := cmp.Diff(batch, again, sameText); err != nil || diff != "" {
			t.Errorf("the batch differs when it is made again: %v\n%s", err, diff)
		}
		for i, d := range batch.Datums {
			got = append(got, int64(d.Tokens[0]))
			if order[batch.Slots[i]] != int64(d.Tokens[0]) {
				t.Errorf("slot %d has row %d, want %d", batch.Slots[i], d.Tokens[0], order[batch.Slots[i]])
			}
		}
		for _, tombstone := range batch.Tombstones {
			if tombstone.Task.Index != order[tombstone.Slot] || !slices.Contains(bad, tombstone.Task.Index) {
				t.Errorf("slot %d is a tombstone of row %d", tombstone.Slot, tombstone.Task.Index)
			}
		}
		cursor, tombstones = batch.Next, tombstones+len(batch.Tombstones)
	}
	// Five batches of four are two and a half epochs of eight usable rows.
	if diff := cmp.Diff(want[:20], got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if slices.Equal(got[:8], got[8:16]) {
		t.Error("the second epoch has the order of the first")
	}
	if tombstones < 4 {
		t.Errorf("%d tombstones, want two in each epoch", tombstones)
	}
}

func TestBatchesEndWithoutUsableRow(t *testing.T) {
	b := newBatches(t, 3, 2)
	_, err := b.Next(t.Context(), 5, numbered(0, 1, 2))
	var none *supervised.NoRowError
	if !errors.As(err, &none) || none.Rows[supervised.NoWeight] != 3 || !strings.Contains(err.Error(), "NoWeight: 3") ||
		!strings.Contains(err.Error(), "no reply") {
		t.Errorf("Next: %v, want that none of 3 rows is usable, with an example", err)
	}
	// One usable row is enough: the batch has it twice, from two epochs.
	batch, err := b.Next(t.Context(), 0, numbered(0, 2))
	if err != nil || len(batch.Datums) != 2 || batch.Datums[0].Tokens[0] != 1 || batch.Datums[1].Tokens[0] != 1 {
		t.Errorf("Next = %+v, %v, want row 1 twice", batch, err)
	}
}

// TestBatchesFindTheOnlyUsableRow makes batches of rows of which one is usable. That row may be first in one epoch and
// last in the next, so that more rows than an epoch has may lie between its two places. This must not count as a lack
// of usable rows.
func TestBatchesFindTheOnlyUsableRow(t *testing.T) {
	const rows = 4
	b := newBatches(t, rows, 1)
	for cursor := int64(0); cursor < 100*rows; {
		batch, err := b.Next(t.Context(), cursor, numbered(0, 1, 3))
		if err != nil || batch.Datums[0].Tokens[0] != 2 {
			t.Fatalf("Next(%d) = %+v, %v, want row 2", cursor, batch.Datums, err)
		}
		cursor = batch.Next
	}
}

func TestBatchesPassErrorsOn(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := newBatches(t, 3, 2).Next(t.Context(), 0, func(context.Context, rl.Task) (supervised.Datum, error) {
		return supervised.Datum{}, broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("Next: %v, want %v", err, broken)
	}
}

func TestMeanNLL(t *testing.T) {
	datums := []supervised.Datum{{Weights: []float32{0, 1, 1}}, {Weights: []float32{1}}}
	got, err := supervised.MeanNLL(datums, [][]float32{{float32(math.Inf(-1)), -1, -2}, {-6}})
	if err != nil || got != 3 {
		t.Errorf("MeanNLL = %v, %v, want 3", got, err)
	}
	for name, c := range map[string]struct {
		datums   []supervised.Datum
		logprobs [][]float32
	}{
		"too few datums": {datums, [][]float32{{-1, -1, -1}}},
		"too few tokens": {datums, [][]float32{{-1, -1}, {-1}}},
		"not a number":   {datums, [][]float32{{-1, float32(math.NaN()), -1}, {-1}}},
		"no weight":      {[]supervised.Datum{{Weights: []float32{0}}}, [][]float32{{-1}}},
	} {
		if got, err := supervised.MeanNLL(c.datums, c.logprobs); err == nil {
			t.Errorf("MeanNLL with %s = %v, want an error", name, got)
		}
	}
}

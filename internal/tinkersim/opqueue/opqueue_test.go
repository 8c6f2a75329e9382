// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opqueue

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func chunk(seq int64) Item[string] { return Item[string]{Seq: seq, Chunk: true} }

func other(seq int64) Item[string] { return Item[string]{Seq: seq} }

func takeAll(q *Queue[string]) []int64 {
	var seqs []int64
	for item, ok := q.Next(); ok; item, ok = q.Next() {
		seqs = append(seqs, item.Seq)
	}
	return seqs
}

func TestQueueOrder(t *testing.T) {
	cases := map[string]struct {
		arrivals []Item[string]
		want     [][]int64 // numbers that are taken after each arrival
		blocked  bool
	}{
		"operations in order do not wait": {
			arrivals: []Item[string]{chunk(1), other(2), other(3)},
			want:     [][]int64{{1}, {2}, {3}},
		},
		"chunks that arrive as 2, 3, 1 are taken as 1, 2, 3": {
			arrivals: []Item[string]{chunk(2), chunk(3), chunk(1), other(4)},
			want:     [][]int64{nil, nil, {1, 2, 3}, {4}},
		},
		"a chunk behind a gap waits": {
			arrivals: []Item[string]{chunk(1), chunk(3)},
			want:     [][]int64{{1}, nil},
			blocked:  true,
		},
		"an operation that is not a chunk releases what is below it": {
			arrivals: []Item[string]{chunk(2), chunk(4), other(6)},
			want:     [][]int64{nil, nil, {2, 4, 6}},
		},
		"an operation that is not a chunk does not release the chunks above it": {
			arrivals: []Item[string]{chunk(7), chunk(2), other(5)},
			want:     [][]int64{nil, nil, {2, 5}},
			blocked:  true,
		},
		"the first number may be missing": {
			arrivals: []Item[string]{other(2), chunk(3)},
			want:     [][]int64{{2}, {3}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var q Queue[string]
			var got [][]int64
			for _, item := range tc.arrivals {
				if err := q.Add(item); err != nil {
					t.Fatalf("Add(%d): %v", item.Seq, err)
				}
				got = append(got, takeAll(&q))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			if q.Blocked() != tc.blocked {
				t.Errorf("Blocked() = %v, want %v", q.Blocked(), tc.blocked)
			}
		})
	}
}

func TestQueueSkip(t *testing.T) {
	var q Queue[string]
	for _, seq := range []int64{5, 3, 9} {
		if err := q.Add(chunk(seq)); err != nil {
			t.Fatal(err)
		}
	}
	q.Skip()
	if diff := cmp.Diff([]int64{3, 5, 9}, takeAll(&q)); diff != "" {
		t.Errorf("after Skip (-want +got):\n%s", diff)
	}
	if err := q.Add(chunk(4)); err != nil {
		t.Errorf("a late chunk among chunks: %v, want it accepted", err)
	}
	if diff := cmp.Diff([]int64{4}, takeAll(&q)); diff != "" {
		t.Errorf("late chunk (-want +got):\n%s", diff)
	}
}

func TestQueueLate(t *testing.T) {
	cases := map[string]struct {
		before []Item[string]
		late   Item[string]
	}{
		"a chunk below an operation that was taken": {[]Item[string]{other(2)}, chunk(1)},
		"an operation below chunks that were taken": {[]Item[string]{chunk(1), chunk(2)}, other(2)},
		"an operation below another":                {[]Item[string]{other(3)}, other(2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var q Queue[string]
			for _, item := range tc.before {
				if err := q.Add(item); err != nil {
					t.Fatal(err)
				}
			}
			takeAll(&q)
			if err := q.Add(tc.late); !errors.Is(err, ErrLate) {
				t.Errorf("Add(%d) = %v, want ErrLate", tc.late.Seq, err)
			}
		})
	}
}

func TestQueueDrain(t *testing.T) {
	var q Queue[string]
	for _, item := range []Item[string]{chunk(4), chunk(2)} {
		if err := q.Add(item); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for _, item := range q.Drain() {
		got = append(got, item.Seq)
	}
	if diff := cmp.Diff([]int64{2, 4}, got); diff != "" {
		t.Errorf("Drain (-want +got):\n%s", diff)
	}
	if _, ok := q.Next(); ok || q.Blocked() {
		t.Error("operations remain after Drain")
	}
}

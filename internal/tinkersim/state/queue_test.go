// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func chunk(seq int64) queueItem[string] { return queueItem[string]{seq: seq, chunk: true} }

func other(seq int64) queueItem[string] { return queueItem[string]{seq: seq} }

func takeAll(q *opQueue[string]) []int64 {
	var seqs []int64
	for item, ok := q.next(); ok; item, ok = q.next() {
		seqs = append(seqs, item.seq)
	}
	return seqs
}

func TestQueueOrder(t *testing.T) {
	cases := map[string]struct {
		arrivals []queueItem[string]
		want     [][]int64 // numbers that are taken after each arrival
		blocked  bool
	}{
		"operations in order do not wait": {
			arrivals: []queueItem[string]{chunk(1), other(2), other(3)},
			want:     [][]int64{{1}, {2}, {3}},
		},
		"chunks that arrive as 2, 3, 1 are taken as 1, 2, 3": {
			arrivals: []queueItem[string]{chunk(2), chunk(3), chunk(1), other(4)},
			want:     [][]int64{nil, nil, {1, 2, 3}, {4}},
		},
		"a chunk behind a gap waits": {
			arrivals: []queueItem[string]{chunk(1), chunk(3)},
			want:     [][]int64{{1}, nil},
			blocked:  true,
		},
		"an operation that is no chunk releases what is below it": {
			arrivals: []queueItem[string]{chunk(2), chunk(4), other(6)},
			want:     [][]int64{nil, nil, {2, 4, 6}},
		},
		"an operation that is no chunk does not release the chunks above it": {
			arrivals: []queueItem[string]{chunk(7), chunk(2), other(5)},
			want:     [][]int64{nil, nil, {2, 5}},
			blocked:  true,
		},
		"the first number may be missing": {
			arrivals: []queueItem[string]{other(2), chunk(3)},
			want:     [][]int64{{2}, {3}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var q opQueue[string]
			var got [][]int64
			for _, item := range tc.arrivals {
				if err := q.add(item); err != nil {
					t.Fatalf("add(%d): %v", item.seq, err)
				}
				got = append(got, takeAll(&q))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			if q.blocked() != tc.blocked {
				t.Errorf("blocked() = %v, want %v", q.blocked(), tc.blocked)
			}
		})
	}
}

func TestQueueSkip(t *testing.T) {
	var q opQueue[string]
	for _, seq := range []int64{5, 3, 9} {
		if err := q.add(chunk(seq)); err != nil {
			t.Fatal(err)
		}
	}
	q.skip()
	if diff := cmp.Diff([]int64{3, 5, 9}, takeAll(&q)); diff != "" {
		t.Errorf("after skip (-want +got):\n%s", diff)
	}
	if err := q.add(chunk(4)); err != nil {
		t.Errorf("a late chunk among chunks: %v, want it accepted", err)
	}
	if diff := cmp.Diff([]int64{4}, takeAll(&q)); diff != "" {
		t.Errorf("late chunk (-want +got):\n%s", diff)
	}
}

func TestQueueLate(t *testing.T) {
	cases := map[string]struct {
		before []queueItem[string]
		late   queueItem[string]
	}{
		"a chunk below an operation that was taken": {[]queueItem[string]{other(2)}, chunk(1)},
		"an operation below chunks that were taken": {[]queueItem[string]{chunk(1), chunk(2)}, other(2)},
		"an operation below another":                {[]queueItem[string]{other(3)}, other(2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var q opQueue[string]
			for _, item := range tc.before {
				if err := q.add(item); err != nil {
					t.Fatal(err)
				}
			}
			takeAll(&q)
			if err := q.add(tc.late); !errors.Is(err, errLate) {
				t.Errorf("add(%d) = %v, want errLate", tc.late.seq, err)
			}
		})
	}
}

func TestQueueDrain(t *testing.T) {
	var q opQueue[string]
	for _, item := range []queueItem[string]{chunk(4), chunk(2)} {
		if err := q.add(item); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for _, item := range q.drain() {
		got = append(got, item.seq)
	}
	if diff := cmp.Diff([]int64{2, 4}, got); diff != "" {
		t.Errorf("drain (-want +got):\n%s", diff)
	}
	if _, ok := q.next(); ok || q.blocked() {
		t.Error("operations remain after drain")
	}
}

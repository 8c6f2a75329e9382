// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeedsArePinned(t *testing.T) {
	got := []uint64{
		Seed(0, Train, 0, 0, 0, 0), Seed(42, Train, 1234, 7, 3, 1), Seed(42, Evaluate, 1234, 7, 3, 1),
		EpisodeSeed(42, Train, 1234, 7, 1),
		SharedSeed(42, Train, 1234, 0, 0),
	}
	want := []uint64{3472552624553983854, 3481629876449119652, 4109994726139819432, 5038891374008962858,
		3589602110068633692}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seeds changed, and with them every sample (-want +got):\n%s", diff)
	}
}

func TestSeedsDifferInEveryArgument(t *testing.T) {
	seen := map[uint64]bool{}
	n, ones := 0, 0
	add := func(seed uint64) {
		seen[seed] = true
		n++
		ones += bits.OnesCount64(seed)
	}
	for _, kind := range []Kind{Train, Evaluate} {
		for i := range 6 * 6 * 6 * 6 * 6 {
			run, slot, member, turn, try := i%6, i/6%6, i/36%6, i/216%6, i/1296
			add(Seed(uint64(run), kind, int64(slot), member, turn, try))
			if turn == 0 {
				add(EpisodeSeed(uint64(run), kind, int64(slot), member, try))
			}
			if try == 0 {
				add(SharedSeed(uint64(run), kind, int64(slot), member, turn))
			}
		}
	}
	if len(seen) != n {
		t.Errorf("%d different seeds of %d", len(seen), n)
	}
	if share := float64(ones) / float64(63*n); share < 0.49 || share > 0.51 {
		t.Errorf("%.3f of the bits are set, want a half of 63", share)
	}
}

func TestSequenceIDKeepsNumbersApart(t *testing.T) {
	seen := map[int64]bool{}
	n := 0
	for _, kind := range []Kind{Train, Evaluate} {
		for _, slot := range []int64{0, 1, 1<<27 - 1} {
			for _, member := range []int{0, 1, 1023} {
				for _, turn := range []int{0, 1, 2047} {
					for _, try := range []int{0, 1, 63} {
						for _, repost := range []int{0, 1, 255} {
							id, err := SequenceID(kind, slot, member, turn, try, repost)
							if err != nil || id < 0 {
								t.Fatalf("SequenceID = %d, %v", id, err)
							}
							seen[id] = true
							n++
						}
					}
				}
			}
		}
	}
	if len(seen) != n {
		t.Errorf("%d different ids of %d", len(seen), n)
	}
}

func TestSequenceIDRefusesWhatDoesNotFit(t *testing.T) {
	cases := map[string][5]int64{
		"a slot of 28 bits":   {1 << 27, 0, 0, 0, 0},
		"a negative slot":     {-1, 0, 0, 0, 0},
		"a member of 11 bits": {0, 1 << 10, 0, 0, 0},
		"a turn of 12 bits":   {0, 0, 1 << 11, 0, 0},
		"a try of 7 bits":     {0, 0, 0, 1 << 6, 0},
		"a repost of 9 bits":  {0, 0, 0, 0, 1 << 8},
	}
	for name, n := range cases {
		t.Run(name, func(t *testing.T) {
			if id, err := SequenceID(Train, n[0], int(n[1]), int(n[2]), int(n[3]), int(n[4])); err == nil {
				t.Errorf("SequenceID = %d, want an error", id)
			}
		})
	}
}

func TestSamplingSessionsOfOtherPoliciesDiffer(t *testing.T) {
	seen := map[int64]bool{}
	for _, lineage := range []Lineage{{}, Genesis("a"), Genesis("b")} {
		seen[SamplingSession(Train, lineage, "")] = true
		seen[SamplingSession(Evaluate, lineage, "plan")] = true
		seen[SamplingSession(Evaluate, lineage, "another")] = true
	}
	for id := range seen {
		if id < 0 || id >= 1<<48 {
			t.Errorf("session %d has more than 48 bits", id)
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d different sessions of 9", len(seen))
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newStream(t *testing.T, seed uint64, sources ...Source) *Stream {
	t.Helper()
	s, err := NewStream(seed, sources)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStreamPlaysEachTaskOnceAnEpoch(t *testing.T) {
	pools := map[string][]Source{
		"one task":            {{Environment: "a", Split: "train", Tasks: 1, Shuffle: true}},
		"three tasks":         {{Environment: "a", Split: "train", Tasks: 3, Shuffle: true}},
		"a power of four":     {{Environment: "a", Split: "train", Tasks: 1024, Shuffle: true}},
		"one more":            {{Environment: "a", Split: "train", Tasks: 1025, Shuffle: true}},
		"an unshuffled split": {{Environment: "a", Split: "train", Tasks: 57}},
		"splits of environments": {{Environment: "a", Split: "x", Tasks: 5, Shuffle: true},
			{Environment: "a", Split: "y", Tasks: 90, Shuffle: true}, {Environment: "b", Split: "x", Tasks: 31, Shuffle: true}},
		"shuffled and not": {{Environment: "a", Split: "x", Tasks: 5}, {Environment: "a", Split: "y", Tasks: 90,
			Shuffle: true}, {Environment: "b", Split: "x", Tasks: 31}},
	}
	for name, sources := range pools {
		t.Run(name, func(t *testing.T) {
			s := newStream(t, 11, sources...)
			for epoch := range int64(3) {
				seen := map[Task]bool{}
				for i := range s.Tasks() {
					seen[s.Task(epoch*s.Tasks()+i)] = true
				}
				want := map[Task]bool{}
				for _, source := range sources {
					for i := range source.Tasks {
						want[Task{Environment: source.Environment, Split: source.Split, Index: i}] = true
					}
				}
				if diff := cmp.Diff(want, seen); diff != "" {
					t.Fatalf("tasks of epoch %d (-want +got):\n%s", epoch, diff)
				}
			}
		})
	}
}

func TestStreamKeepsAnUnshuffledSplitInItsOrder(t *testing.T) {
	s := newStream(t, 3,
		Source{Environment: "a", Split: "own", Tasks: 40},
		Source{Environment: "b", Split: "mixed", Tasks: 60, Shuffle: true})
	next, longest, since := int64(0), 0, 0
	for slot := range s.Tasks() {
		since++
		if task := s.Task(slot); task.Environment == "a" {
			if task.Index != next {
				t.Fatalf("slot %d plays task %d, want %d", slot, task.Index, next)
			}
			next++
			longest, since = max(longest, since), 0
		}
	}
	if next != 40 || longest > 3 {
		t.Errorf("%d tasks of the split came, at most %d slots apart; want 40, spread evenly", next, longest)
	}
}

func TestStreamDependsOnSeedAndEpochAlone(t *testing.T) {
	a := Source{Environment: "a", Split: "train", Tasks: 500, Shuffle: true}
	b := Source{Environment: "b", Split: "train", Tasks: 300, Shuffle: true}
	base := newStream(t, 1, a, b)
	differs := func(other *Stream, offset int64) int {
		n := 0
		for slot := range int64(800) {
			if base.Task(slot) != other.Task(slot+offset) {
				n++
			}
		}
		return n
	}
	if n := differs(newStream(t, 1, b, a), 0); n != 0 {
		t.Errorf("the order of sources changed %d slots", n)
	}
	if n := differs(newStream(t, 2, a, b), 0); n < 700 {
		t.Errorf("another seed changed %d slots of 800 only", n)
	}
	if n := differs(base, 800); n < 700 {
		t.Errorf("another epoch changed %d slots of 800 only", n)
	}
}

func TestStreamSharesSlotsByWeight(t *testing.T) {
	s := newStream(t, 5,
		Source{Environment: "a", Split: "x", Tasks: 7, Shuffle: true, Weight: 3},
		Source{Environment: "a", Split: "y", Tasks: 3, Shuffle: true, Weight: 3},
		Source{Environment: "b", Split: "x", Tasks: 50, Weight: 1})
	played := map[Task]int{}
	for slot := range int64(400) {
		task := s.Task(slot)
		played[task]++
		if a := countOf(played, "a"); math.Abs(float64(a)-0.75*float64(slot+1)) > 1 {
			t.Fatalf("after %d slots %d are of a, want three quarters", slot+1, a)
		}
	}
	for i := range int64(7) {
		if n := played[Task{Environment: "a", Split: "x", Index: i}]; n != 30 {
			t.Errorf("task %d of a was played %d times, want 30", i, n)
		}
	}
	for i := range int64(50) {
		if n := played[Task{Environment: "b", Split: "x", Index: i}]; n != 2 {
			t.Errorf("task %d of b was played %d times, want 2", i, n)
		}
	}
}

func countOf(played map[Task]int, environment string) int {
	sum := 0
	for task, n := range played {
		if task.Environment == environment {
			sum += n
		}
	}
	return sum
}

func TestStreamSharesUnevenWeightsOverRounds(t *testing.T) {
	s := newStream(t, 5,
		Source{Environment: "a", Split: "x", Tasks: 7, Shuffle: true, Weight: 1},
		Source{Environment: "b", Split: "x", Tasks: 9, Weight: math.Pi})
	for _, slot := range []int64{1000, weightParts, 5 * weightParts} {
		seen := 0
		for i := range int64(1000) {
			if s.Task(slot+i).Environment == "a" {
				seen++
			}
		}
		if want := 1000 / (1 + math.Pi); math.Abs(float64(seen)-want) > 2 {
			t.Errorf("from slot %d, %d of 1000 are of a, want %.1f", slot, seen, want)
		}
	}
}

func TestStreamIsPinned(t *testing.T) {
	s := newStream(t, 42, Source{Environment: "a", Split: "train", Tasks: 10, Shuffle: true})
	var got []int64
	for slot := range int64(20) {
		got = append(got, s.Task(slot).Index)
	}
	want := []int64{5, 1, 6, 9, 0, 7, 2, 3, 4, 8, 4, 5, 8, 6, 3, 1, 7, 2, 0, 9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks under seed 42 changed, and with them every run (-want +got):\n%s", diff)
	}
}

func TestStreamHandlesHugePools(t *testing.T) {
	s := newStream(t, 42, Source{Environment: "a", Split: "train", Tasks: 1 << 39, Shuffle: true})
	seen := map[Task]bool{}
	for slot := range int64(10000) {
		task := s.Task(slot)
		if task.Index < 0 || task.Index >= 1<<39 || seen[task] {
			t.Fatalf("slot %d plays %v, out of range or twice", slot, task)
		}
		seen[task] = true
	}
}

func TestNewStreamRefuses(t *testing.T) {
	ok := Source{Environment: "a", Split: "x", Tasks: 1}
	cases := map[string][]Source{
		"no source":            {},
		"no task":              {{Environment: "a", Split: "x"}},
		"too many tasks":       {{Environment: "a", Split: "x", Tasks: maxTasks + 1}},
		"a negative weight":    {{Environment: "a", Split: "x", Tasks: 1, Weight: -1}},
		"a weight that is NaN": {{Environment: "a", Split: "x", Tasks: 1, Weight: math.NaN()}},
		"a weight for some":    {ok, {Environment: "b", Split: "x", Tasks: 1, Weight: 1}},
		"a split twice":        {ok, ok},
		"weights that differ at home": {{Environment: "a", Split: "x", Tasks: 1, Weight: 1},
			{Environment: "a", Split: "y", Tasks: 1, Weight: 2}},
	}
	for name, sources := range cases {
		t.Run(name, func(t *testing.T) {
			if s, err := NewStream(1, sources); err == nil {
				t.Errorf("NewStream gave %v, want an error", s)
			}
		})
	}
}

func TestPermutationIsUniform(t *testing.T) {
	t.Parallel()
	const seeds = 24000
	counts := map[string]int{}
	for seed := range uint64(seeds) {
		p := newPermutation(4, seed, "test", 0)
		counts[fmt.Sprint(p.at(0), p.at(1), p.at(2), p.at(3))]++
	}
	square := 0.0
	for _, n := range counts {
		square += math.Pow(float64(n)-seeds/24, 2) / (seeds / 24)
	}
	// With 23 degrees of freedom, chi square exceeds 49.7 once in a thousand.
	if len(counts) != 24 || square > 49.7 {
		t.Errorf("%d orders of 4 came, chi square %.1f; want 24 and at most 49.7", len(counts), square)
	}
}

func TestInterleaveSpreadsEvenly(t *testing.T) {
	for _, counts := range [][]int64{{1}, {3, 3}, {1, 10}, {7, 5, 3, 1}, {1000, 1, 1}, {2, 1 << 20}} {
		total := int64(0)
		for _, n := range counts {
			total += n
		}
		next := make([]int64, len(counts))
		for i := range total {
			source, rank := interleave(counts, i)
			if rank != next[source] {
				t.Fatalf("%v: position %d has element %d of source %d, want %d", counts, i, rank, source, next[source])
			}
			next[source]++
			share := float64(counts[source]) * float64(i+1) / float64(total)
			if math.Abs(float64(next[source])-share) > float64(len(counts)) {
				t.Fatalf("%v: at position %d source %d is at %d, its share is %.2f", counts, i, source, next[source], share)
			}
		}
		if diff := cmp.Diff(counts, next); diff != "" {
			t.Errorf("%v came as (-want +got):\n%s", counts, diff)
		}
	}
}

func BenchmarkStreamTask(b *testing.B) {
	s, err := NewStream(1, []Source{{Environment: "a", Split: "train", Tasks: 490364, Shuffle: true}})
	if err != nil {
		b.Fatal(err)
	}
	for i := int64(0); b.Loop(); i++ {
		s.Task(i)
	}
}

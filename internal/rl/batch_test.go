// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcomesOf looks outcomes up by slot, whatever the version.
func outcomesOf(outcomes map[int64]Outcome) Known {
	return func(slot, _ int64) (Outcome, bool) {
		o, ok := outcomes[slot]
		return o, ok
	}
}

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		rules  Rules
		at     Position
		newest int64
		known  map[int64]Outcome
		want   []Batch
	}{
		"a fresh step leases its first G slots": {
			rules: Rules{TasksPerStep: 3, Refill: true, Steps: 9},
			want:  []Batch{{Next: 3, Missing: []int64{0, 1, 2}}},
		},
		"later results do not close a batch before earlier ones": {
			rules: Rules{TasksPerStep: 2, Refill: true, Steps: 9},
			known: map[int64]Outcome{1: Usable},
			want:  []Batch{{Next: 2, Members: []int64{1}, Missing: []int64{0}}},
		},
		"a dropped group is refilled with the next slot": {
			rules: Rules{TasksPerStep: 2, Refill: true, Steps: 9},
			known: map[int64]Outcome{0: Constant},
			want:  []Batch{{Next: 3, Missing: []int64{1, 2}}},
		},
		"without refill a dropped group shrinks the batch": {
			rules: Rules{TasksPerStep: 2, Steps: 9},
			known: map[int64]Outcome{0: Usable, 1: EnvironmentFault},
			want:  []Batch{{Next: 2, Certain: true, Members: []int64{0}}},
		},
		"a refused group keeps its place and is left out": {
			rules: Rules{TasksPerStep: 2, Refill: true, Steps: 9},
			known: map[int64]Outcome{0: InvalidTokens, 1: Usable},
			want:  []Batch{{Next: 2, Certain: true, Members: []int64{1}}},
		},
		"refilling ends at four times the batch, be it empty": {
			rules: Rules{TasksPerStep: 1, Refill: true, Steps: 9},
			known: map[int64]Outcome{0: Constant, 1: JudgeFault, 2: BelowFloor, 3: Deadline},
			want:  []Batch{{Next: 4, Certain: true}},
		},
		"a batch at the limit is certain before its last outcome": {
			rules:  Rules{TasksPerStep: 1, Refill: true, Steps: 9, Lag: 1},
			known:  map[int64]Outcome{0: Constant, 1: Constant, 2: Constant},
			want:   []Batch{{Next: 4, Certain: true, Missing: []int64{3}}, {Step: 1, First: 4, Next: 5, Missing: []int64{4}}},
			newest: 0,
		},
		"on-policy, the next step waits for its version": {
			rules:  Rules{TasksPerStep: 1, Refill: true, Steps: 9},
			at:     Position{Step: 4, Cursor: 7},
			newest: 4,
			known:  map[int64]Outcome{7: Usable},
			want:   []Batch{{Step: 4, Version: 4, First: 7, Next: 8, Certain: true, Members: []int64{7}}},
		},
		"on-policy, the next step is leased once its version is announced": {
			rules:  Rules{TasksPerStep: 1, Refill: true, Steps: 9},
			at:     Position{Step: 4, Cursor: 7},
			newest: 5,
			known:  map[int64]Outcome{7: Usable},
			want: []Batch{
				{Step: 4, Version: 4, First: 7, Next: 8, Certain: true, Members: []int64{7}},
				{Step: 5, Version: 5, First: 8, Next: 9, Missing: []int64{8}},
			},
		},
		"with a lag, the next step waits until this one's slots are certain": {
			rules:  Rules{TasksPerStep: 1, Refill: true, Steps: 9, Lag: 1},
			at:     Position{Step: 4, Cursor: 7},
			newest: 4,
			want:   []Batch{{Step: 4, Version: 3, First: 7, Next: 8, Missing: []int64{7}}},
		},
		"with a lag and without refill, slots are certain from the start": {
			rules:  Rules{TasksPerStep: 1, Steps: 9, Lag: 1},
			at:     Position{Step: 4, Cursor: 7},
			newest: 4,
			want: []Batch{
				{Step: 4, Version: 3, First: 7, Next: 8, Certain: true, Missing: []int64{7}},
				{Step: 5, Version: 4, First: 8, Next: 9, Certain: true, Missing: []int64{8}},
			},
		},
		"with a lag and slots of its own, the next step does not wait for this one's": {
			rules:  Rules{TasksPerStep: 2, Refill: true, OwnSlots: true, Steps: 9, Lag: 1},
			at:     Position{Step: 4, Cursor: 32},
			newest: 4,
			known:  map[int64]Outcome{33: Constant, 40: Constant},
			want: []Batch{
				{Step: 4, Version: 3, First: 32, Next: 35, Missing: []int64{32, 34}},
				{Step: 5, Version: 4, First: 40, Next: 43, Missing: []int64{41, 42}},
			},
		},
		"a step takes no slots of another's own": {
			rules: Rules{TasksPerStep: 1, Refill: true, OwnSlots: true, Steps: 9},
			known: map[int64]Outcome{0: Constant, 1: Constant, 2: Constant, 3: Constant, 4: Usable},
			want:  []Batch{{Next: 4, Certain: true}},
		},
		"nothing is leased beyond the last step": {
			rules:  Rules{TasksPerStep: 1, Steps: 1, Lag: 3},
			newest: 0,
			want:   []Batch{{Next: 1, Certain: true, Missing: []int64{0}}},
		},
		"a version that is permanently lost is replaced by the next newer": {
			rules:  Rules{TasksPerStep: 1, Steps: 9, Lag: 2, OldestVersion: 4},
			at:     Position{Step: 4, Cursor: 7},
			newest: 4,
			known:  map[int64]Outcome{7: Usable},
			want: []Batch{
				{Step: 4, Version: 4, First: 7, Next: 8, Certain: true, Members: []int64{7}},
				{Step: 5, Version: 4, First: 8, Next: 9, Certain: true, Missing: []int64{8}},
				{Step: 6, Version: 4, First: 9, Next: 10, Certain: true, Missing: []int64{9}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.rules.Batches(tc.at, tc.newest, outcomesOf(tc.known))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Plan (-want +got):\n%s", diff)
			}
		})
	}
}

// sequentialBatches defines the batches: it plays slots one after the other, and cuts the slots into batches.
func sequentialBatches(rules Rules, outcome func(slot int64) Outcome) []Batch {
	var batches []Batch
	cursor := int64(0)
	for step := range rules.Steps {
		if rules.OwnSlots {
			cursor = step * 4 * int64(rules.TasksPerStep)
		}
		b := Batch{Step: step, Version: max(0, step-int64(rules.Lag)), First: cursor, Certain: true}
		for places := 0; ; cursor++ {
			taken := int(cursor - b.First)
			full := places == rules.TasksPerStep
			if !rules.Refill {
				full = taken == rules.TasksPerStep
			}
			if full || taken == 4*rules.TasksPerStep {
				break
			}
			switch outcome(cursor) {
			case Usable:
				b.Members = append(b.Members, cursor)
				places++
			case InvalidTokens:
				places++
			}
		}
		b.Next = cursor
		batches = append(batches, b)
	}
	return batches
}

// loop is a learner and its workers, reduced to the inputs of a batch. Results come in a random order. The learner may
// die at any time, and then loses some or all of its memory.
type loop struct {
	t       *testing.T
	rules   Rules
	rng     *rand.Rand
	outcome func(slot int64) Outcome
	// sampledBy has the only version under which each slot was ever leased.
	sampledBy map[int64]int64

	at      Position
	newest  int64
	known   map[int64]Outcome
	playing []int64
	trained []Batch
}

func (l *loop) run() []Batch {
	l.known, l.sampledBy = map[int64]Outcome{}, map[int64]int64{}
	for l.at.Step < l.rules.Steps {
		batches := l.rules.Batches(l.at, l.newest, l.lookup)
		l.lease(batches)
		switch l.rng.IntN(12) {
		case 0:
			l.die()
		case 1, 2, 3:
			l.train(batches[0])
		default:
			l.finish()
		}
	}
	return l.trained
}

func (l *loop) lookup(slot, version int64) (Outcome, bool) {
	o, ok := l.known[slot]
	if by, leased := l.sampledBy[slot]; ok && leased && by != version {
		l.t.Fatalf("slot %d was sampled by version %d, and is wanted of %d", slot, by, version)
	}
	return o, ok
}

func (l *loop) lease(batches []Batch) {
	for _, b := range batches {
		if b.Version > l.newest {
			l.t.Fatalf("step %d: version %d is leased, %d is the newest", b.Step, b.Version, l.newest)
		}
		for _, slot := range b.Missing {
			if by, ok := l.sampledBy[slot]; ok && by != b.Version {
				l.t.Fatalf("slot %d leased under version %d and %d", slot, by, b.Version)
			}
			l.sampledBy[slot] = b.Version
			if !slices.Contains(l.playing, slot) {
				l.playing = append(l.playing, slot)
			}
		}
	}
}

// finish ends a random group in play.
func (l *loop) finish() {
	if len(l.playing) == 0 {
		return
	}
	i := l.rng.IntN(len(l.playing))
	slot := l.playing[i]
	l.playing = slices.Delete(l.playing, i, i+1)
	l.known[slot] = l.outcome(slot)
}

// train trains on a batch if it is decided: it announces the new version, and commits the step at once or when it is
// called again.
func (l *loop) train(b Batch) {
	if !b.Decided() {
		return
	}
	l.newest = b.Step + 1
	if l.rng.IntN(2) == 0 {
		return
	}
	l.trained = append(l.trained, b)
	l.at = l.rules.After(b)
}

// die loses the announced version, the groups in play, and a random part of the known outcomes.
func (l *loop) die() {
	l.newest = l.at.Step
	l.playing = nil
	for slot := range l.known {
		if l.rng.IntN(2) == 0 {
			delete(l.known, slot)
		}
	}
}

func TestPlanGivesTheSameBatchesInWhateverOrderResultsCome(t *testing.T) {
	t.Parallel()
	weights := [][]Outcome{
		{Usable},
		{Usable, Usable, Usable, Constant},
		{Usable, Constant, EnvironmentFault, InvalidTokens},
		{Usable, Constant, Constant, Deadline, JudgeFault, BelowFloor, Constant},
		{Constant},
	}
	for name, refills := range map[string]Rules{"no refill": {}, "refill": {Refill: true},
		"refill from own slots": {Refill: true, OwnSlots: true}} {
		for lag := range 4 {
			for kind, outcomes := range weights {
				t.Run(fmt.Sprintf("%s, lag %d, outcomes %d", name, lag, kind), func(t *testing.T) {
					t.Parallel()
					for trial := range uint64(15) {
						rules := refills
						rules.TasksPerStep, rules.Lag, rules.Steps = 1+int(trial%5), lag, 12
						checkAnyOrder(t, rules, outcomes, trial)
					}
				})
			}
		}
	}
}

func checkAnyOrder(t *testing.T, rules Rules, outcomes []Outcome, trial uint64) {
	t.Helper()
	outcome := func(slot int64) Outcome {
		return outcomes[EpisodeSeed(trial, Train, slot, 0, 0)%uint64(len(outcomes))]
	}
	l := &loop{t: t, rules: rules, rng: rand.New(rand.NewPCG(trial, 7)), outcome: outcome}
	got := l.run()
	if diff := cmp.Diff(sequentialBatches(rules, outcome), got); diff != "" {
		t.Fatalf("trial %d: batches (-definition +loop):\n%s", trial, diff)
	}
	for slot := range l.sampledBy {
		if end := got[len(got)-1].Next; slot >= end {
			t.Fatalf("trial %d: slot %d was leased, but the last batch ends before %d", trial, slot, end)
		}
	}
}

// TestTasksOfOwnSlots checks that the first slots of the steps pass over all tasks in order, whatever is refilled.
func TestTasksOfOwnSlots(t *testing.T) {
	const tasks, want = 12, 3
	stream, err := NewStream(5, []Source{{Environment: "e", Split: "train", Tasks: tasks, Shuffle: true}})
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{TasksPerStep: want, Refill: true, OwnSlots: true}
	refills := map[Task]bool{}
	for step := range int64(2 * tasks / want) {
		first := rules.After(Batch{Step: step - 1, First: (step - 1) * rules.limit()}).Cursor
		for place := range int64(want) {
			if got, expected := rules.Task(stream, first+place), stream.Task(step*want+place); got != expected {
				t.Errorf("slot %d of step %d plays %v, want %v", place, step, got, expected)
			}
			if step < tasks/want {
				refills[rules.Task(stream, first+want+place)] = true
			}
		}
	}
	if len(refills) < 2*tasks/3 {
		t.Errorf("the first refills of a pass have %d different tasks of %d", len(refills), tasks)
	}
	if got, expected := (Rules{TasksPerStep: want, Refill: true}).Task(stream, 17), stream.Task(17); got != expected {
		t.Errorf("without own slots slot 17 plays %v, want %v", got, expected)
	}
}

// TestRefillsKeepTheOrderOfASplit checks that the refills of a step play the tasks that follow the tasks of the step.
func TestRefillsKeepTheOrderOfASplit(t *testing.T) {
	stream, err := NewStream(5, []Source{{Environment: "e", Split: "train", Tasks: 100}})
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{TasksPerStep: 3, Refill: true, OwnSlots: true}
	for place := range int64(12) {
		if got := rules.Task(stream, 24+place).Index; got != 6+place {
			t.Errorf("slot %d of step 2 plays task %d, want %d", place, got, 6+place)
		}
	}
}

func TestBatchManifestListsTombstonesToo(t *testing.T) {
	rules := Rules{TasksPerStep: 1, Refill: true, Steps: 1}
	outcomes := map[int64]Outcome{5: Constant, 6: Usable}
	batch := rules.Batches(Position{Cursor: 5}, 0, outcomesOf(outcomes))[0]
	got := batch.Manifest(func(slot int64) (Outcome, Digest) { return outcomes[slot], Digest{byte(slot)} })
	want := Manifest{Slots: []SlotDigest{
		{Slot: 5, Outcome: Constant, Digest: Digest{5}}, {Slot: 6, Outcome: Usable, Digest: Digest{6}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Manifest (-want +got):\n%s", diff)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// state returns the entry of a state. The name has the default lineages of the step and of the step before it.
func state(attempt int32, model int, step int64) Entry {
	name := rl.CheckpointName{
		Run: "1f3a9c2b", Step: step, Cursor: 4 * step, Attempt: attempt, Model: model,
		Lineage: lineage(step), Parent: lineage(step - 1),
	}
	return Entry{Path: "state " + name.String(), Name: name, Listed: true}
}

func sampler(e Entry) Entry {
	e.Path, e.Sampler = "sampler "+e.Name.String(), true
	return e
}

func lineage(step int64) rl.Lineage {
	if step < 0 {
		return rl.Lineage{}
	}
	return rl.Genesis(fmt.Sprint(step))
}

func chain(upTo int64) map[int64]rl.Lineage {
	c := map[int64]rl.Lineage{}
	for step := range upTo + 1 {
		c[step] = lineage(step)
	}
	return c
}

func TestStates(t *testing.T) {
	late := state(1, 1, 9)
	late.Name.Cursor = 1000
	l := Index{}
	for _, e := range []Entry{late, state(2, 1, 3), state(2, 2, 3), state(2, 2, 4), state(1, 3, 7),
		sampler(state(3, 1, 9))} {
		l.Add(e)
	}
	var got []string
	for _, e := range l.States() {
		got = append(got, fmt.Sprintf("a%dm%d s%d", e.Name.Attempt, e.Name.Model, e.Name.Step))
	}
	want := []string{"a2m2 s4", "a2m2 s3", "a2m1 s3", "a1m3 s7", "a1m1 s9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states, the newest first (-want +got):\n%s", diff)
	}
}

func TestChain(t *testing.T) {
	l := Index{}
	for _, step := range []int64{0, 1, 2, 3} {
		l.Add(state(1, 1, step))
	}
	branch := state(1, 2, 2)
	branch.Name.Lineage = rl.Genesis("b")
	l.Add(branch)
	if diff := cmp.Diff(chain(3), l.Chain(rl.Version{Step: 3, Lineage: lineage(3)}, lineage(2))); diff != "" {
		t.Errorf("chain (-want +got):\n%s", diff)
	}
	delete(l, state(1, 1, 2).Path)
	want := map[int64]rl.Lineage{3: lineage(3), 2: lineage(2)}
	if diff := cmp.Diff(want, l.Chain(rl.Version{Step: 3, Lineage: lineage(3)}, lineage(2))); diff != "" {
		t.Errorf("chain with a name missing (-want +got):\n%s", diff)
	}
}

func TestRetire(t *testing.T) {
	const day, week = 86400, 604800
	full := func() Index {
		l := Index{}
		for step := range int64(8) {
			l.Add(state(1, 1, step))
			l.Add(sampler(state(1, 1, step)))
		}
		return l
	}
	both := func(ttl int64, steps ...int64) map[string]int64 {
		want := map[string]int64{}
		for _, step := range steps {
			want[state(1, 1, step).Path], want[sampler(state(1, 1, step)).Path] = ttl, ttl
		}
		return want
	}
	union := func(maps ...map[string]int64) map[string]int64 {
		all := map[string]int64{}
		for _, m := range maps {
			for path, ttl := range m {
				all[path] = ttl
			}
		}
		return all
	}
	now := Now{Step: 7, Attempt: 1, Chain: chain(7)}
	cases := map[string]struct {
		retention Retention
		now       Now
		change    func(Index)
		want      map[string]int64
	}{
		"the newest state and a spare are kept": {
			retention: Retention{RollingTTLSeconds: day}, now: now, want: both(day, 0, 1, 2, 3, 4, 5),
		},
		"a lag widens the window": {
			retention: Retention{RollingTTLSeconds: day, Lag: 2}, now: now, want: both(day, 0, 1, 2, 3),
		},
		"the last state alone is kept at the end": {
			retention: Retention{RollingTTLSeconds: day, Lag: 2}, now: Now{Step: 7, Complete: true, Attempt: 1, Chain: chain(7)},
			want: both(day, 0, 1, 2, 3, 4, 5, 6),
		},
		"lasting ones live longer": {
			retention: Retention{RollingTTLSeconds: day, EverySteps: 2, TTLSeconds: week}, now: now,
			want: union(both(day, 0, 1, 3, 5), both(week, 2, 4)),
		},
		"lasting ones live for ever without a time": {
			retention: Retention{RollingTTLSeconds: day, EverySteps: 2}, now: now, want: both(day, 0, 1, 3, 5),
		},
		"only so many last": {
			retention: Retention{RollingTTLSeconds: day, EverySteps: 2, TTLSeconds: week, KeepLast: 2}, now: now,
			want: union(both(day, 0, 1, 2, 3, 5), both(week, 4)),
		},
		"the best and the unevaluated are kept": {
			retention: Retention{RollingTTLSeconds: day},
			now: Now{Step: 7, Attempt: 1, Chain: chain(7), Needed: map[rl.Version]bool{
				{Step: 2, Lineage: lineage(2)}: true, {Step: 4, Lineage: lineage(4)}: true}},
			want: both(day, 0, 1, 3, 5),
		},
		"nothing of a later attempt is touched": {
			retention: Retention{RollingTTLSeconds: day}, now: Now{Step: 7, Attempt: 0, Chain: chain(7)},
			want: map[string]int64{},
		},
		"what expires is left alone": {
			retention: Retention{RollingTTLSeconds: day}, now: now,
			change: func(l Index) {
				for path, e := range l {
					e.Expires = true
					l[path] = e
				}
			},
			want: map[string]int64{},
		},
		"branches are retired": {
			retention: Retention{RollingTTLSeconds: day}, now: now,
			change: func(l Index) {
				clear(l)
				ahead, beside := state(1, 2, 9), state(1, 2, 7)
				beside.Name.Lineage = rl.Genesis("b")
				l.Add(ahead)
				l.Add(beside)
				l.Add(state(1, 1, 7))
			},
			want: map[string]int64{state(1, 2, 9).Path: day, state(1, 2, 7).Path: day},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := full()
			if tc.change != nil {
				tc.change(l)
			}
			got := map[string]int64{}
			for _, r := range tc.retention.Retire(l, tc.now) {
				got[r.Path] = r.TTLSeconds
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("retirements (-want +got):\n%s", diff)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// bookOf returns a book with a state and sampler weights of each step from 0 to steps, whose chain ends at the last
// step.
func bookOf(t *testing.T, config Config, steps int64) *Book {
	t.Helper()
	book := NewBook(config)
	index := Index{}
	for step := range steps + 1 {
		index.Add(state(1, 1, step))
		index.Add(sampler(state(1, 1, step)))
	}
	book.Replace(index)
	book.Begin(PositionOf(state(1, 1, steps).Name))
	return book
}

func version(step int64) rl.Version { return rl.Version{Step: step, Lineage: lineage(step)} }

func TestScore(t *testing.T) {
	type score struct {
		step  int64
		value float64
	}
	cases := map[string]struct {
		keep   int
		scores []score
		want   []int64
		metric string
	}{
		"nothing is scored": {keep: 2},
		"the highest is best": {2, []score{{1, 0.2}, {2, 0.9}, {3, 0.5}}, []int64{2, 3},
			contract.MetricPassAt1},
		"of equal ones the earlier is best": {2, []score{{3, 0.5}, {1, 0.5}, {2, 0.1}}, []int64{1, 3}, ""},
		"a later score replaces an earlier": {2, []score{{1, 0.9}, {2, 0.5}, {1, 0.1}}, []int64{2, 1}, ""},
		"none is kept":                      {0, []score{{1, 0.9}}, nil, ""},
		"the lowest likelihood lost is the best": {2, []score{{1, 0.2}, {2, 0.9}, {3, 0.5}}, []int64{1, 3},
			contract.MetricHeldOutNLL},
		"that of a split":                         {1, []score{{1, 0.2}, {2, 0.1}}, []int64{2}, "test/held/nll"},
		"of equally low ones the earlier is best": {1, []score{{3, 0.5}, {1, 0.5}}, []int64{1}, contract.MetricNLL},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			book := NewBook(Config{Best: tc.keep, Metric: tc.metric})
			for _, s := range tc.scores {
				book.Score(version(s.step), s.value)
			}
			var got []int64
			for _, s := range book.best {
				got = append(got, s.version.Step)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("best steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestList(t *testing.T) {
	value := 0.5
	at := func(step int64) contract.Checkpoint {
		return contract.Checkpoint{
			Step: step, State: state(1, 1, step).Path, Sampler: sampler(state(1, 1, step)).Path, Lineage: lineage(step).Short(),
			Attempt: 1,
		}
	}
	best := at(1)
	best.Metric, best.Value = "m", &value
	branch := state(2, 1, 2)
	branch.Name.Lineage = rl.Genesis("b")
	branch.Path = "branch"
	unlisted := state(3, 1, 2)
	unlisted.Path, unlisted.Listed = "unlisted", false
	bare := at(2)
	bare.Sampler = ""
	cases := map[string]struct {
		change func(*Book)
		saved  int64
		want   []contract.Checkpoint
		best   *contract.Checkpoint
	}{
		"the newest comes first":                    {nil, 2, []contract.Checkpoint{at(2), at(1), at(0)}, nil},
		"a state that is not committed is left out": {nil, 1, []contract.Checkpoint{at(1), at(0)}, nil},
		"the best has its value": {func(b *Book) { b.Score(version(1), value) }, 2,
			[]contract.Checkpoint{at(2), at(1), at(0)}, &best},
		"a best version without a state does not count": {func(b *Book) { b.Score(version(7), value) }, 2,
			[]contract.Checkpoint{at(2), at(1), at(0)}, nil},
		"a branch is left out": {func(b *Book) { b.index.Add(branch) }, 2,
			[]contract.Checkpoint{at(2), at(1), at(0)}, nil},
		"an unlisted state is left out": {func(b *Book) { b.index.Add(unlisted) }, 2,
			[]contract.Checkpoint{at(2), at(1), at(0)}, nil},
		"sampler weights may be missing": {func(b *Book) { delete(b.index, at(2).Sampler) }, 2,
			[]contract.Checkpoint{bare, at(1), at(0)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			book := bookOf(t, Config{Attempt: 3, Best: 1, Metric: "m"}, 2)
			if tc.change != nil {
				tc.change(book)
			}
			got, gotBest := book.List(tc.saved)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("newest (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.best, gotBest); diff != "" {
				t.Errorf("best (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListIsBounded(t *testing.T) {
	book := bookOf(t, Config{Attempt: 1, Best: 1, Metric: "m"}, 30)
	book.Score(version(2), 1)
	newest, best := book.List(30)
	if len(newest) != 16 || newest[0].Step != 30 {
		t.Errorf("%d states from step %d are listed, want 16 from step 30", len(newest), newest[0].Step)
	}
	if best == nil || best.Step != 2 {
		t.Errorf("the best is %+v, want the checkpoint of step 2, which is not among the newest", best)
	}
}

func TestRetirements(t *testing.T) {
	cases := map[string]struct {
		change      func(*Book)
		outstanding []rl.Version
		want        []int64
	}{
		"the newest two are needed":    {nil, nil, []int64{0, 1, 2}},
		"the best is needed":           {func(b *Book) { b.Score(version(1), 1) }, nil, []int64{0, 2}},
		"an outstanding one is needed": {nil, []rl.Version{version(0)}, []int64{1, 2}},
		"one that was retired is left": {func(b *Book) {
			b.Retired(Retirement{Path: state(1, 1, 0).Path, TTLSeconds: 60}, noon)
		}, nil, []int64{1, 2}},
		"a better one takes its place": {func(b *Book) { b.Score(version(1), 1); b.Score(version(2), 2) }, nil,
			[]int64{0, 1}},
		"nothing is retired at the start": {func(b *Book) { b.Replace(Index{}) }, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			book := bookOf(t, Config{Attempt: 1, Best: 1, Retention: Retention{RollingTTLSeconds: 60, TTLSeconds: 600}}, 4)
			if tc.change != nil {
				tc.change(book)
			}
			var got []int64
			for _, r := range book.Retirements(4, false, tc.outstanding) {
				if e := book.index[r.Path]; !e.Sampler {
					got = append(got, e.Name.Step)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps whose states are retired (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRetired(t *testing.T) {
	cases := map[string]struct {
		ttl  int64
		kept bool
		want string
	}{
		"a checkpoint that expires soon is dropped": {60, false, ""},
		"a lasting checkpoint has its time":         {600, true, "2026-01-02T12:10:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			book := bookOf(t, Config{Retention: Retention{TTLSeconds: 600}}, 1)
			path := state(1, 1, 0).Path
			book.Retired(Retirement{Path: path, TTLSeconds: tc.ttl}, noon)
			e, kept := book.index[path]
			if kept != tc.kept || e.ExpirationTime != tc.want || e.Expires != tc.kept {
				t.Errorf("entry is %+v, kept %v, want kept %v until %q", e, kept, tc.kept, tc.want)
			}
		})
	}
}

func TestExpiredEntriesAreForgotten(t *testing.T) {
	book := bookOf(t, Config{Retention: Retention{TTLSeconds: 600}}, 2)
	for step := range int64(2) {
		book.Retired(Retirement{Path: state(1, 1, step).Path, TTLSeconds: 600}, noon.Add(time.Duration(step)*time.Hour))
	}
	if _, kept := book.index[state(1, 1, 0).Path]; kept {
		t.Error("a state that expired is still known")
	}
	for step := int64(1); step <= 2; step++ {
		if _, kept := book.index[state(1, 1, step).Path]; !kept {
			t.Errorf("the state of step %d has not expired and is forgotten", step)
		}
	}
}

func TestIsExpired(t *testing.T) {
	cases := map[string]struct {
		expires string
		want    bool
	}{
		"a checkpoint without a time to live":  {"", false},
		"a time that is still to come":         {"2026-01-02T12:00:01Z", false},
		"the very moment":                      {"2026-01-02T12:00:00Z", true},
		"a time in another zone that is past":  {"2026-01-02T12:30:00+01:00", true},
		"a text that is not a time is ignored": {"tomorrow", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Entry{ExpirationTime: tc.expires}).IsExpired(noon); got != tc.want {
				t.Errorf("IsExpired is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBookChain(t *testing.T) {
	book := bookOf(t, Config{}, 2)
	book.Append(version(3))
	known := func() map[int64]rl.Lineage {
		found := map[int64]rl.Lineage{}
		for step := int64(-1); step < 6; step++ {
			if v, ok := book.Version(step); ok {
				found[step] = v.Lineage
			}
		}
		return found
	}
	if diff := cmp.Diff(chain(3), known()); diff != "" {
		t.Errorf("chain after a step (-want +got):\n%s", diff)
	}
	book.Replace(Index{})
	book.Begin(Position{Version: rl.Version{Step: 4, Lineage: rl.Genesis("x")}, Parent: rl.Genesis("y")})
	book.Append(version(2))
	want := map[int64]rl.Lineage{4: rl.Genesis("x"), 3: rl.Genesis("y"), 2: lineage(2)}
	if diff := cmp.Diff(want, known()); diff != "" {
		t.Errorf("chain of a version without names (-want +got):\n%s", diff)
	}
}

func TestBeginForgetsTheBest(t *testing.T) {
	book := bookOf(t, Config{Best: 1}, 2)
	book.Score(version(1), 1)
	book.Begin(Position{})
	if _, best := book.List(2); best != nil {
		t.Errorf("the best is %+v after another state was loaded", best)
	}
}

func TestAddSaved(t *testing.T) {
	book := NewBook(Config{})
	e := state(1, 1, 2)
	book.AddSaved(e.Path, e.Name, false, noon)
	e.SaveTime = "2026-01-02T12:00:00Z"
	if diff := cmp.Diff([]Entry{e}, book.States()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if found := book.Find(version(2), true); len(found) > 0 {
		t.Errorf("a state is found among sampler weights: %+v", found)
	}
	if found := book.Find(version(2), false); len(found) != 1 {
		t.Errorf("found %+v, want the state", found)
	}
	book.Replace(Index{})
	book.Replace(Index{e.Path: e, "listed": {Path: "listed"}})
	if !book.HasSaved(e.Path) || book.HasSaved("listed") {
		t.Errorf("saved by this process: the state %t, the checkpoint that the server lists %t", book.HasSaved(e.Path),
			book.HasSaved("listed"))
	}
}

func TestPositionIsItsName(t *testing.T) {
	at := Position{Version: rl.Version{Step: 3, Lineage: rl.Genesis("a")}, Cursor: 14, Parent: rl.Genesis("b")}
	name := at.Name("1f3a9c2b-0000-4000-8000-000000000001", 2, 5)
	if name.Run != "1f3a9c2b" || name.Attempt != 2 || name.Model != 5 {
		t.Errorf("name is %+v", name)
	}
	if got := PositionOf(name); got != at {
		t.Errorf("position comes back as %+v, want %+v", got, at)
	}
}

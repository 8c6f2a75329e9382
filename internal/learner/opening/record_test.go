// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// foreign returns an account with n checkpoints of other runs.
func foreign(n int) *fake {
	f := &fake{store: map[int32]artifacts.Models{}}
	for i := range n {
		id := "other-" + strconv.Itoa(i)
		f.checkpoints = append(f.checkpoints, tinker.Checkpoint{TinkerPath: "tinker://" + id + "/weights/mine", Time: noon})
		f.runs = append(f.runs, tinker.TrainingRun{TrainingRunID: id})
	}
	return f
}

// ofModel returns a checkpoint that a model saved.
func ofModel(model string, attempt int32, step int64, kind tinker.Kind) tinker.Checkpoint {
	c := saved(attempt, step, kind)
	path, _ := tinker.ParsePath(c.TinkerPath)
	path.Run = model
	c.TinkerPath = path.String()
	return c
}

func ofAttempt(attempt int32) func(*contract.RunFile) {
	return func(f *contract.RunFile) { f.Attempt = attempt }
}

func statesOf(o *Opener) (paths []string) {
	for _, e := range o.Book.States() {
		paths = append(paths, e.Path)
	}
	return paths
}

// TestOpeningsOfALargeAccount opens a run 50 times, each time with another learner, in an account with 10,000
// checkpoints of others. Each opening lists the checkpoints of a few models, and all of the run's checkpoints are
// known.
func TestOpeningsOfALargeAccount(t *testing.T) {
	const attempts = 50
	f := foreign(10_000)
	var want []string
	for attempt := int32(1); attempt <= attempts; attempt++ {
		o := open(f, ofAttempt(attempt))
		f.listings, f.runLists, f.looked = 0, nil, 0
		if err := o.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := statesOf(o); !slices.Equal(got, want) {
			t.Fatalf("attempt %d knows (-want +got):\n%s", attempt, cmp.Diff(want, got))
		}
		if first := attempt == 1; f.listings > 0 && !first || f.looked > mostModels || len(f.runLists) > 4 {
			t.Fatalf("attempt %d makes %d listings of the account, looks at %d items, and at the models %v", attempt, f.listings,
				f.looked, f.runLists)
		}
		for _, model := range []string{"refused", "remade", "own"} {
			id := fmt.Sprintf("%s-%d", model, attempt)
			if err := o.MakeModel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if model != "own" {
				o.EndModel(id, model == "remade")
			}
		}
		id := fmt.Sprintf("own-%d", attempt)
		state := ofModel(id, attempt, 0, tinker.KindState)
		f.checkpoints = append(f.checkpoints, state, ofModel(id, attempt, 0, tinker.KindSampler))
		want = append([]string{state.TinkerPath}, want...)
	}
	if n := len(f.unloaded); n != 2*(attempts-1) {
		t.Errorf("%d models were unloaded, want the %d that had saved something", n, 2*(attempts-1))
	}
}

// TestLateSavesAreListed makes the model of attempt 1 save after attempt 2 has listed, and checks that attempt 3 lists
// the checkpoint.
func TestLateSavesAreListed(t *testing.T) {
	f := foreign(0)
	for attempt := int32(1); attempt <= 2; attempt++ {
		o := open(f, ofAttempt(attempt))
		if err := o.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := o.MakeModel(t.Context(), fmt.Sprint("m", attempt)); err != nil {
			t.Fatal(err)
		}
	}
	late := ofModel("m1", 1, 3, tinker.KindState)
	f.checkpoints = append(f.checkpoints, late)
	o := open(f, ofAttempt(3))
	if err := o.List(t.Context()); err != nil || !slices.Equal(statesOf(o), []string{late.TinkerPath}) {
		t.Errorf("attempt 3 knows %v (%v), want %s", statesOf(o), err, late.TinkerPath)
	}
}

// TestOpeningThatFails lists again in the same process, and checks which checkpoints are known: the checkpoints that
// earlier attempts knew, without the ones retired since, and the checkpoints of its own models.
func TestOpeningThatFails(t *testing.T) {
	f := foreign(0)
	old, kept := ofModel("gone", 1, 1, tinker.KindState), ofModel("gone", 1, 2, tinker.KindState)
	f.store[1] = artifacts.Models{Known: []artifacts.KnownCheckpoint{{Path: old.TinkerPath}, {Path: kept.TinkerPath,
		Saved: noon.Format(time.RFC3339), Expires: noon.Add(time.Hour).Format(time.RFC3339)}}}
	o := open(f, nil)
	if err := o.List(t.Context()); err != nil || len(statesOf(o)) != 2 {
		t.Fatalf("List: %v, %v", statesOf(o), err)
	}
	if states := o.Book.States(); states[1].Expires || !states[0].Expires || !states[0].Listed {
		t.Errorf("the states are %+v", states)
	}
	o.Book.Retired(checkpoints.Retirement{Path: old.TinkerPath, TTLSeconds: 60}, noon)
	o.Retired(t.Context(), []string{old.TinkerPath})
	if known := f.store[2].Known; len(known) != 1 || known[0].Path != kept.TinkerPath {
		t.Errorf("the next attempt knows %+v", known)
	}
	if err := o.MakeModel(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	own := ofModel("own", 2, 3, tinker.KindState)
	f.checkpoints = []tinker.Checkpoint{own}
	want := []string{own.TinkerPath, kept.TinkerPath}
	if err := o.List(t.Context()); err != nil || !slices.Equal(statesOf(o), want) {
		t.Errorf("the second opening knows %v (%v), want %v", statesOf(o), err, want)
	}
}

// TestAccountsAreListed checks in which cases the whole account is listed.
func TestAccountsAreListed(t *testing.T) {
	state := ofModel("m", 1, 1, tinker.KindState)
	recorded := map[int32]artifacts.Models{1: {Made: []string{"m"}}}
	cases := map[string]struct {
		store   map[int32]artifacts.Models
		runs    []tinker.TrainingRun
		err     error
		attempt int32
		former  string
		listed  bool
	}{
		"no artifact storage":  {attempt: 2, listed: true},
		"nothing is recorded":  {store: map[int32]artifacts.Models{}, attempt: 2, listed: true},
		"a model is recorded":  {store: recorded, attempt: 2},
		"a run that is new":    {store: map[int32]artifacts.Models{}, attempt: 1},
		"a run of another one": {store: map[int32]artifacts.Models{}, attempt: 1, former: other, listed: true},
		"a run whose artifacts are lost": {store: map[int32]artifacts.Models{}, attempt: 1, listed: true,
			runs: []tinker.TrainingRun{{TrainingRunID: "m", UserMetadata: tinker.Metadata{trainee.MetadataRun: uid}}}},
		"an endpoint that lists no models apart": {store: recorded, attempt: 2, listed: true,
			err: &client.Error{Category: tinker.CategoryUnsupported}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{store: tc.store, runs: tc.runs, runListErr: tc.err, checkpoints: []tinker.Checkpoint{state}}
			o := open(f, func(f *contract.RunFile) { f.Attempt, f.ResumeFrom = tc.attempt, tc.former })
			if err := o.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			if f.accountLists > 0 != tc.listed {
				t.Errorf("the account was listed %d times, want that it is listed: %v", f.accountLists, tc.listed)
			}
			if found := len(statesOf(o)) == 1; found == (name == "a run that is new") {
				t.Errorf("the run has the states %v", statesOf(o))
			}
		})
	}
}

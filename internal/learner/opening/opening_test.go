// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

const (
	uid   = "1f3a9c2b-0000-4000-8000-000000000001"
	other = "1f3a9c2b-ffff-4000-8000-000000000001" // begins with the same 8 digits
)

// errLost is returned if no state can be loaded.
var errLost = failure.New(problem.NoUsableCheckpoint, errors.New("missing"), "loading")

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// unloading guards the fields that concurrent calls change.
var unloading sync.Mutex

// fake is an endpoint and its models.
type fake struct {
	runs        []tinker.TrainingRun
	runsErr     error
	checkpoints []tinker.Checkpoint
	listErr     error
	unloaded    []string
	meet        chan struct{} // of two calls that unload models
	recorded    []string      // as unloaded
	runLists    []string      // of checkpoints of one model
	runListErr  error
	listings    int
	// accountLists counts the listings of all checkpoints, and looked counts the models that were looked at.
	accountLists, looked int
	rows                 []string
	origin               rl.Lineage // that the rows lead to
	resumed              int        // index of the state that loads
	remakeErr            error
	remade               int
	existsErr            error
	missing              map[string]bool
	store                map[int32]artifacts.Models // records of models by attempt; nil without artifact storage
	attempt              int32
}

func each[T any](list []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
		if err != nil {
			var zero T
			yield(zero, err)
		}
	}
}

// look counts the runs that are looked at.
func (f *fake) look(runs []tinker.TrainingRun, err error) iter.Seq2[tinker.TrainingRun, error] {
	return func(yield func(tinker.TrainingRun, error) bool) {
		for run, err := range each(runs, err) {
			if f.looked++; !yield(run, err) {
				return
			}
		}
	}
}

func (f *fake) TrainingRuns(context.Context) iter.Seq2[tinker.TrainingRun, error] {
	f.listings++
	return f.look(f.runs, f.runsErr)
}

func (f *fake) Capabilities(context.Context) (tinker.ServerCapabilities, error) {
	return tinker.ServerCapabilities{}, nil
}

func (f *fake) Checkpoints(context.Context) iter.Seq2[tinker.Checkpoint, error] {
	f.listings++
	f.accountLists++
	return each(f.checkpoints, f.listErr)
}

func (f *fake) RunCheckpoints(_ context.Context, id string) (found []tinker.Checkpoint, err error) {
	f.runLists = append(f.runLists, id)
	for _, c := range f.checkpoints {
		if path, _ := tinker.ParsePath(c.TinkerPath); path.Run == id {
			found = append(found, c)
		}
	}
	return found, f.runListErr
}

func (f *fake) HasStore() bool { return f.store != nil }

// Models returns the records of the newest two attempts.
func (f *fake) Models(context.Context) (newest []artifacts.Models, err error) {
	attempts := slices.Sorted(maps.Keys(f.store))
	for _, attempt := range slices.Backward(attempts) {
		if attempt < f.attempt && len(newest) < 2 {
			newest = append(newest, f.store[attempt])
		}
	}
	return newest, nil
}

func (f *fake) WriteModels(_ context.Context, models artifacts.Models) error {
	if f.store != nil {
		f.store[f.attempt] = models
	}
	return nil
}

func (f *fake) Unloaded() []string { return f.recorded }

func (f *fake) SetUnloaded(_ context.Context, models []string) error {
	f.recorded = models
	return nil
}

func (f *fake) UnloadModel(_ context.Context, id string) error {
	if f.meet != nil {
		select {
		case f.meet <- struct{}{}:
		case <-f.meet:
		case <-time.After(5 * time.Minute):
			return errors.New("models are not unloaded at the same time")
		}
	}
	unloading.Lock()
	defer unloading.Unlock()
	f.unloaded = append(f.unloaded, id)
	return nil
}

func (f *fake) Fresh(context.Context, *contract.InitFrom) (*trainee.Model, error) {
	return &trainee.Model{Number: 1}, nil
}

func (f *fake) Resume(_ context.Context, states []checkpoints.Entry) (*trainee.Model, checkpoints.Entry, error) {
	if f.resumed >= len(states) {
		return nil, checkpoints.Entry{}, errLost
	}
	return &trainee.Model{Number: 2}, states[f.resumed], nil
}

func (f *fake) RemakeSampler(_ context.Context, states []checkpoints.Entry) (string, rl.CheckpointName, error) {
	f.remade++
	return "remade", states[0].Name, f.remakeErr
}

func (f *fake) Exists(_ context.Context, state checkpoints.Entry) (bool, error) {
	return state.Listed, f.existsErr
}

func (f *fake) Origin(rl.Version) (rl.Lineage, bool) { return f.origin, !f.origin.IsZero() }

func (f *fake) RecentStates() []string { return f.rows }

// lineage returns the lineage of a step.
func lineage(step int64) rl.Lineage { return rl.Genesis(string(rune('a' + step))) }

// path returns the path under which the model of an attempt saved a step.
func path(attempt int32, step int64, kind tinker.Kind) string {
	at := checkpoints.Position{Version: rl.Version{Step: step, Lineage: lineage(step)}, Cursor: 4 * step,
		Parent: lineage(step - 1)}
	return tinker.Path{Run: "model", Kind: kind, Name: at.Name(uid, attempt, 1).String()}.String()
}

func saved(attempt int32, step int64, kind tinker.Kind) tinker.Checkpoint {
	return tinker.Checkpoint{TinkerPath: path(attempt, step, kind), Time: noon}
}

// open returns an opener of attempt 2.
func open(f *fake, change func(*contract.RunFile)) *Opener {
	file := contract.RunFile{
		// lineage(0) is the first version of these settings
		Run: contract.RunReference{UID: uid}, Attempt: 2, SpecDigest: "a",
		Fixed: contract.Fixed{Algorithm: &algorithm.Algorithm{Steps: 9, Lag: 2}},
	}
	if change != nil {
		change(&file)
	}
	f.attempt = file.Attempt
	return New(Config{
		File: file, API: f, Models: f, Book: checkpoints.NewBook(checkpoints.Config{}), Rows: f, Unloads: f, Record: f,
		IsMissing: func(path string) bool { return f.missing[path] },
		Saved:     func(string, rl.CheckpointName, bool) {}, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return noon },
	})
}

func TestList(t *testing.T) {
	missing := &client.Error{Category: tinker.CategoryUnsupported}
	failure := errors.New("the endpoint is unreachable")
	cases := map[string]struct {
		fake     fake
		known    []string
		listed   []string
		observed []string
		err      error
	}{
		"nothing is saved": {},
		"what the server lists": {
			fake:   fake{checkpoints: []tinker.Checkpoint{saved(1, 1, tinker.KindState), saved(1, 2, tinker.KindState)}},
			listed: []string{path(1, 2, tinker.KindState), path(1, 1, tinker.KindState)},
		},
		"what the run file and rows name": {
			fake: fake{rows: []string{path(1, 2, tinker.KindState)}}, known: []string{path(1, 1, tinker.KindState)},
			observed: []string{path(1, 2, tinker.KindState), path(1, 1, tinker.KindState)},
		},
		"the server's entry replaces that of a row": {
			fake: fake{rows: []string{path(1, 2, tinker.KindState)},
				checkpoints: []tinker.Checkpoint{saved(1, 2, tinker.KindState)}},
			listed: []string{path(1, 2, tinker.KindState)},
		},
		"only sampler weights": {fake: fake{checkpoints: []tinker.Checkpoint{saved(1, 1, tinker.KindSampler)}}},
		"names of others are left out": {fake: fake{
			checkpoints: []tinker.Checkpoint{{TinkerPath: "tinker://model/weights/mine"}, {TinkerPath: "x"}}}},
		"another run whose uid is alike": {fake: fake{
			runs: []tinker.TrainingRun{{TrainingRunID: "model",
				UserMetadata: tinker.Metadata{trainee.MetadataRun: other}}},
			checkpoints: []tinker.Checkpoint{saved(1, 1, tinker.KindState)},
		}},
		"an endpoint that lists nothing": {
			fake: fake{runsErr: missing, listErr: missing}, known: []string{path(1, 1, tinker.KindState)},
			observed: []string{path(1, 1, tinker.KindState)},
		},
		"models that are not listed":      {fake: fake{runsErr: failure}, err: failure},
		"checkpoints that are not listed": {fake: fake{listErr: failure}, err: failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := open(&tc.fake, func(f *contract.RunFile) { f.KnownCheckpoints = tc.known })
			if err := o.List(t.Context()); !errors.Is(err, tc.err) {
				t.Errorf("List = %v, want %v", err, tc.err)
			}
			var listed, observed []string
			for _, e := range o.Book.States() {
				if e.Listed {
					listed = append(listed, e.Path)
				} else {
					observed = append(observed, e.Path)
				}
			}
			if diff := cmp.Diff(tc.listed, listed); diff != "" {
				t.Errorf("listed states (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.observed, observed); diff != "" {
				t.Errorf("other states (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListUnloadsEarlierModels(t *testing.T) {
	model := func(id, run, attempt string) tinker.TrainingRun {
		return tinker.TrainingRun{TrainingRunID: id, UserMetadata: tinker.Metadata{trainee.MetadataRun: run,
			trainee.MetadataAttempt: attempt}}
	}
	f := &fake{runs: []tinker.TrainingRun{
		model("earlier", uid, "1"), model("own", uid, "2"), model("later", uid, "3"), model("other", other, "1"),
		model("broken", uid, "x"), {TrainingRunID: "bare"},
	}}
	if err := open(f, nil).List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"earlier"}, f.unloaded); diff != "" {
		t.Errorf("unloaded (-want +got):\n%s", diff)
	}
}

// TestUnloadOnce opens a run whose attempts have left a model each, and checks that each model is unloaded once, and
// several at a time.
func TestUnloadOnce(t *testing.T) {
	f := &fake{meet: make(chan struct{})}
	for attempt := range int32(200) {
		id := strconv.Itoa(int(attempt))
		f.runs = append(f.runs, tinker.TrainingRun{TrainingRunID: id, UserMetadata: tinker.Metadata{trainee.MetadataRun: uid,
			trainee.MetadataAttempt: id}})
	}
	for _, step := range []struct {
		attempt int32
		want    int
	}{{190, 190}, {190, 190}, {200, 200}} {
		o := open(f, func(file *contract.RunFile) { file.Attempt = step.attempt })
		for range 2 {
			if err := o.List(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(f.unloaded); got != step.want {
			t.Errorf("%d models were unloaded when attempt %d had listed, want %d", got, step.attempt, step.want)
		}
	}
}

// TestListOfOwnModels opens models one after the other. Only the first opening, and an opening after a failed one,
// lists the checkpoints of others.
func TestListOfOwnModels(t *testing.T) {
	f := &fake{checkpoints: []tinker.Checkpoint{saved(1, 1, tinker.KindState)}}
	o := open(f, nil)
	of := func(model string, step int64) tinker.Checkpoint {
		c := saved(2, step, tinker.KindState)
		path, _ := tinker.ParsePath(c.TinkerPath)
		path.Run = model
		c.TinkerPath = path.String()
		return c
	}
	list := func(what string, listings int, runLists, states []string) {
		t.Helper()
		f.listings, f.runLists = 0, nil
		if err := o.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range o.Book.States() {
			got = append(got, e.Path)
		}
		if diff := cmp.Diff(states, got); diff != "" {
			t.Errorf("%s: states (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(runLists, f.runLists); diff != "" || f.listings != listings {
			t.Errorf("%s: %d listings of the account, want %d; of models (-want +got):\n%s", what, f.listings, listings, diff)
		}
	}
	first := path(1, 1, tinker.KindState)
	list("first", 2, nil, []string{first})
	o.Made("a")
	late := of("a", 2)
	f.checkpoints = append(f.checkpoints, late, saved(1, 2, tinker.KindState))
	list("a model was discarded", 0, []string{"a"}, []string{late.TinkerPath, first})
	o.Made("b")
	f.checkpoints = []tinker.Checkpoint{of("b", 3)}
	list("and another, whose predecessor's states expired", 0, []string{"a", "b"},
		[]string{f.checkpoints[0].TinkerPath, first})
	list("an opening that failed", 2, nil, []string{f.checkpoints[0].TinkerPath})
	o.Made("c")
	f.runListErr = &client.Error{Category: tinker.CategoryUnsupported}
	list("an endpoint that lists no models apart", 2, []string{"b"}, []string{f.checkpoints[0].TinkerPath})
}

func TestLoad(t *testing.T) {
	states := []tinker.Checkpoint{saved(1, 1, tinker.KindState), saved(1, 2, tinker.KindState)}
	cases := map[string]struct {
		fake   fake
		change func(*contract.RunFile)
		step   int64
		number int
		err    error
	}{
		"the run begins":   {fake{}, nil, 0, 1, nil},
		"the newest state": {fake{checkpoints: states}, nil, 2, 2, nil},
		"the one before":   {fake{checkpoints: states, resumed: 1}, nil, 1, 2, nil},
		"no state loads":   {fake{checkpoints: states, resumed: 2}, nil, 0, 0, errLost},
		"a state of a higher attempt": {fake{checkpoints: []tinker.Checkpoint{saved(3, 1, tinker.KindState)}}, nil, 0, 0,
			artifacts.ErrFenced},
		"a run that only evaluates": {fake{checkpoints: states}, func(f *contract.RunFile) { f.Fixed.Algorithm = nil }, 0, 1,
			nil},
		"sampler weights that are given": {fake{}, func(f *contract.RunFile) {
			f.Fixed.Algorithm, f.Fixed.InitFrom = nil, &contract.InitFrom{Checkpoint: path(1, 1, tinker.KindSampler)}
		}, 0, 0, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := open(&tc.fake, tc.change)
			if err := o.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			loaded, err := o.Load(t.Context())
			if !errors.Is(err, tc.err) || loaded.At.Step != tc.step {
				t.Errorf("Load = step %d and %v, want step %d and %v", loaded.At.Step, err, tc.step, tc.err)
			}
			number := 0
			if loaded.Model != nil {
				number = loaded.Model.Number
			}
			if number != tc.number {
				t.Errorf("model %d is loaded, want %d", number, tc.number)
			}
		})
	}
}

// TestLostVersionsCountOnce opens a window twice that lacks a version, and checks that the loss counts once.
func TestLostVersionsCountOnce(t *testing.T) {
	o := open(&fake{checkpoints: []tinker.Checkpoint{saved(1, 4, tinker.KindState), saved(1, 5, tinker.KindState)}}, nil)
	if err := o.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := checkpoints.Position{Version: rl.Version{Step: 5, Lineage: lineage(5)}, Parent: lineage(4)}
	o.Book.Begin(at)
	for i, want := range []int32{1, 0} {
		if _, lost, err := o.Window(t.Context(), at, "sampler"); err != nil || lost != want {
			t.Errorf("opening %d loses %d versions (%v), want %d", i+1, lost, err, want)
		}
	}
}

func TestWindow(t *testing.T) {
	expired := saved(1, 3, tinker.KindSampler)
	past := noon.Add(-time.Hour)
	expired.ExpiresAt = &past
	all := []tinker.Checkpoint{
		saved(1, 3, tinker.KindSampler), saved(1, 4, tinker.KindSampler),
		saved(1, 3, tinker.KindState), saved(1, 4, tinker.KindState), saved(1, 5, tinker.KindState),
	}
	failure := errors.New("the endpoint is unreachable")
	cases := map[string]struct {
		fake   fake
		at     int64
		want   map[int64]string
		lost   int32
		remade int
		err    error
	}{
		"samplers that exist": {fake: fake{checkpoints: all}, at: 5,
			want: map[int64]string{3: path(1, 3, tinker.KindSampler), 4: path(1, 4, tinker.KindSampler), 5: "sampler"}},
		"a sampler that has expired is remade": {fake: fake{checkpoints: append([]tinker.Checkpoint{expired}, all[1:]...)},
			at:   5,
			want: map[int64]string{3: "remade", 4: path(1, 4, tinker.KindSampler), 5: "sampler"}, remade: 1},
		"a sampler that a worker has missed is remade": {
			fake: fake{checkpoints: all, missing: map[string]bool{path(1, 3, tinker.KindSampler): true}}, at: 5,
			want: map[int64]string{3: "remade", 4: path(1, 4, tinker.KindSampler), 5: "sampler"}, remade: 1},
		"samplers that are missing are remade": {fake: fake{checkpoints: all[2:]}, at: 5,
			want: map[int64]string{3: "remade", 4: "remade", 5: "sampler"}, remade: 2},
		"a version without a state is lost": {fake: fake{checkpoints: all[3:]}, at: 5,
			want: map[int64]string{4: "remade", 5: "sampler"}, lost: 1, remade: 1},
		"a version whose states do not load is lost, and those before": {
			fake: fake{checkpoints: all[2:], remakeErr: errLost}, at: 5,
			want: map[int64]string{5: "sampler"}, lost: 2, remade: 1},
		"a remake that fails":      {fake: fake{checkpoints: all[2:], remakeErr: failure}, at: 5, remade: 1, err: failure},
		"the run begins at step 0": {at: 0, want: map[int64]string{0: "sampler"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := open(&tc.fake, nil)
			if err := o.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			at := checkpoints.Position{Version: rl.Version{Step: tc.at, Lineage: lineage(tc.at)}, Parent: lineage(tc.at - 1)}
			o.Book.Begin(at)
			versions, lost, err := o.Window(t.Context(), at, "sampler")
			if !errors.Is(err, tc.err) || lost != tc.lost || tc.fake.remade != tc.remade {
				t.Errorf("%d lost, %d remade (%v), want %d, %d (%v)", lost, tc.fake.remade, err, tc.lost, tc.remade, tc.err)
			}
			var got map[int64]string
			for i, v := range versions {
				if got == nil {
					got = map[int64]string{}
				}
				got[v.Step] = v.Sampler
				if i > 0 && v.Step != versions[i-1].Step+1 {
					t.Errorf("versions are not in order: %+v", versions)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("samplers by step (-want +got):\n%s", diff)
			}
		})
	}
}

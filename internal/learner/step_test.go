// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestSavesAt(t *testing.T) {
	cases := map[string]struct {
		checkpoints contract.Checkpoints
		want        []int64
	}{
		"the last alone":             {contract.Checkpoints{}, []int64{7}},
		"every rolling state":        {contract.Checkpoints{RollingEverySteps: 3}, []int64{3, 6, 7}},
		"every lasting state":        {contract.Checkpoints{EverySteps: 5}, []int64{5, 7}},
		"rolling and lasting states": {contract.Checkpoints{RollingEverySteps: 3, EverySteps: 2}, []int64{2, 3, 4, 6, 7}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := contract.RunFile{Fixed: contract.Fixed{Algorithm: &algorithm.Algorithm{Steps: 7}},
				Checkpoints: tc.checkpoints}
			var got []int64
			for step := int64(1); step <= 7; step++ {
				if savesAt(file, step) {
					got = append(got, step)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps whose states are saved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndOf(t *testing.T) {
	failure := errors.New("a call failed")
	cases := map[string]struct {
		ended bool
		err   error
		want  error
	}{
		"no error":                      {true, nil, nil},
		"an error while the run lasts":  {false, failure, failure},
		"an error after the context":    {true, failure, errDrained},
		"a kill is never anything else": {true, ErrKilled, ErrKilled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if tc.ended {
				end(errDrained)
			}
			if got := endOf(ctx, tc.err); !errors.Is(got, tc.want) {
				t.Errorf("endOf = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWait(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(errDrained)
	cases := map[string]struct {
		ctx      context.Context
		failures int
		want     error
	}{
		"the first try waits for nothing": {ended, 0, nil},
		"a wait ends with its context":    {ended, 1, errDrained},
		"a wait has a longest":            {ended, 1000, errDrained},
		"a short wait ends by itself":     {t.Context(), 1, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			timing := Timing{Pause: time.Hour}
			if tc.want == nil {
				timing.Pause = time.Microsecond
			}
			if got := timing.wait(tc.ctx, tc.failures); !errors.Is(got, tc.want) {
				t.Errorf("wait = %v, want %v", got, tc.want)
			}
		})
	}
}

// fakeExpirer is an API whose answers depend on the path.
type fakeExpirer struct {
	errs map[string]error
	set  map[string]int64
	// recorded has the paths that were recorded as retired.
	recorded []string
}

func (f *fakeExpirer) SetTTL(_ context.Context, path string, seconds *int64) error {
	if err := f.errs[path]; err != nil {
		return err
	}
	f.set[path] = *seconds
	return nil
}

// retiring returns a retirer whose book has a state of each step from 0 to 5.
func retiring(t *testing.T, api *fakeExpirer) *retirer {
	t.Helper()
	book := checkpoints.NewBook(checkpoints.Config{Attempt: 1, Retention: checkpoints.Retention{RollingTTLSeconds: 60}})
	at := checkpoints.Position{Version: rl.Version{Lineage: rl.Genesis("x")}}
	for step := range int64(6) {
		at.Step = step
		name := at.Name("1f3a9c2b-0000", 1, 1)
		book.AddSaved(pathOf(step), name, false, time.Unix(0, 0))
	}
	return &retirer{
		api: api, book: book, outstanding: func() []rl.Version { return nil },
		retired: func(_ context.Context, paths []string) { api.recorded = append(api.recorded, paths...) },
		logger:  slog.New(slog.DiscardHandler), now: time.Now, busy: make(chan struct{}, 1),
	}
}

func pathOf(step int64) string { return "state-" + string(rune('0'+step)) }

func TestRetire(t *testing.T) {
	missing := &client.Error{Category: tinker.CategoryNotFound}
	cases := map[string]struct {
		errs  map[string]error
		first []string
		again []string
	}{
		"all that is out of use": {nil, []string{pathOf(0), pathOf(1), pathOf(2), pathOf(3), pathOf(4)}, nil},
		"one that fails is retried later": {map[string]error{pathOf(1): errors.New("x")},
			[]string{pathOf(0), pathOf(2), pathOf(3), pathOf(4)}, []string{pathOf(1)}},
		"one that is missing is left": {map[string]error{pathOf(1): missing}, []string{pathOf(0), pathOf(2), pathOf(3),
			pathOf(4)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &fakeExpirer{errs: tc.errs, set: map[string]int64{}}
			r := retiring(t, api)
			for round, want := range [][]string{tc.first, tc.again} {
				clear(api.set)
				r.finish(t.Context(), 5)
				expected := map[string]int64{}
				for _, path := range want {
					expected[path] = 60
				}
				if diff := cmp.Diff(expected, api.set); diff != "" {
					t.Errorf("round %d (-want +got):\n%s", round, diff)
				}
				api.errs = nil
			}
			recorded := slices.Clone(api.recorded)
			slices.Sort(recorded)
			if want := []string{pathOf(0), pathOf(1), pathOf(2), pathOf(3), pathOf(4)}; !slices.Equal(recorded, want) {
				t.Errorf("%v are recorded as retired, want %v", recorded, want)
			}
		})
	}
}

func TestRetireOneRoundAtATime(t *testing.T) {
	api := &fakeExpirer{set: map[string]int64{}}
	r := retiring(t, api)
	var begun []func(context.Context)
	background := func(task func(context.Context)) { begun = append(begun, task) }
	r.begin(5, background)
	r.begin(5, background)
	if len(begun) != 1 {
		t.Fatalf("%d rounds are begun at once, want 1", len(begun))
	}
	begun[0](t.Context())
	if r.begin(5, background); len(begun) != 2 {
		t.Errorf("no round is begun after the first has ended: got %v, want 2", len(begun))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	r.finish(ended, 5) // does not wait for the round that is in progress
}

func TestEncodePlay(t *testing.T) {
	file := contract.RunFile{
		Version: contract.FormatVersion, Concurrency: 3, Fixed: contract.Fixed{
			BaseURL: "http://u", Model: contract.Model{Name: "m", Tokenizer: &contract.Tokenizer{Repository: "r",
				SHA256: "old"}},
			Algorithm: &algorithm.Algorithm{Grouping: algorithm.GroupingStep},
		},
	}
	encoded, err := encodePlay(file, "new", false)
	if err != nil {
		t.Fatal(err)
	}
	var got contract.Play
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != contract.FormatVersion || got.Model.Tokenizer.SHA256 != "new" || got.Concurrency != 3 ||
		!got.StepRewards {
		t.Errorf("play is %+v", got)
	}
	if sha := file.Fixed.Model.Tokenizer.SHA256; sha != "old" {
		t.Errorf("encoding changes the digest of the run file to %s, want old", sha)
	}
}

// TestEncodePlayPinsTheTokenizer checks that Play has the known digest of the tokenizer: workers read the model only
// from Play, and must not fetch a tokenizer without that digest.
func TestEncodePlayPinsTheTokenizer(t *testing.T) {
	for name, tc := range map[string]struct{ spec, earlier, found, want string }{
		"nothing is known":          {},
		"the spec's":                {spec: "a", want: "a"},
		"an earlier attempt's":      {earlier: "b", want: "b"},
		"the learner has read it":   {spec: "a", earlier: "a", found: "c", want: "c"},
		"the spec's and an earlier": {spec: "a", earlier: "b", want: "a"},
	} {
		file := contract.RunFile{Version: contract.FormatVersion, TokenizerSHA256: tc.earlier,
			Fixed: contract.Fixed{Model: contract.Model{Tokenizer: &contract.Tokenizer{Repository: "r", SHA256: tc.spec}}}}
		encoded, err := encodePlay(file, tc.found, false)
		if err != nil {
			t.Fatal(err)
		}
		play, err := contract.DecodePlay(encoded)
		if got := play.Model.Tokenizer.SHA256; err != nil || got != tc.want {
			t.Errorf("%s: the digest is %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

func TestBatchConfig(t *testing.T) {
	file := contract.RunFile{Fixed: contract.Fixed{
		Algorithm: &algorithm.Algorithm{TasksPerStep: 4, OnDroppedGroup: algorithm.RefillDroppedGroups, Lag: 1, Steps: 9,
			Seed: 5},
		Environments: []contract.Environment{
			{Name: "a", GroupSize: 4, MinMembers: 2, Splits: []contract.Split{{Name: "train", Tasks: 10}}},
		},
	}}
	got, err := batchConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rl.Rules{TasksPerStep: 4, Refill: true, OwnSlots: true, Lag: 1, Steps: 9}, got.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if shape := got.Groups["a"]; shape.Size != 4 || shape.MinMembers != 2 || got.Seed != 5 || got.Stream == nil {
		t.Errorf("config is %+v", got)
	}
	for name, change := range map[string]func(a *algorithm.Algorithm){
		"without a lag":   func(a *algorithm.Algorithm) { a.Lag = 0 },
		"without refills": func(a *algorithm.Algorithm) { a.OnDroppedGroup = algorithm.ShrinkDroppedGroups },
	} {
		changed := *file.Fixed.Algorithm
		change(&changed)
		without := contract.RunFile{Fixed: contract.Fixed{Algorithm: &changed, Environments: file.Fixed.Environments}}
		if got, err = batchConfig(without); err != nil || got.Rules.OwnSlots {
			t.Errorf("rules %s: %+v, %v, want no slots of the step's own", name, got.Rules, err)
		}
	}
	file.Fixed.Environments[0].Splits = nil
	if _, err := batchConfig(file); err == nil || verdictOf(err).Cause != contract.CauseConfigRejected {
		t.Errorf("environments without tasks give %v", err)
	}
}

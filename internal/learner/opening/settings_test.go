// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"errors"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestLoadAfterChangedSettings checks that a run begins anew as long as no step is committed, continues if its former
// settings are restored, and refuses to train if a step was committed with other settings.
func TestLoadAfterChangedSettings(t *testing.T) {
	state := func(attempt int32, step int64, lineage, parent rl.Lineage) tinker.Checkpoint {
		at := checkpoints.Position{Version: rl.Version{Step: step, Lineage: lineage}, Parent: parent}
		return tinker.Checkpoint{TinkerPath: tinker.Path{Run: "model", Kind: tinker.KindState,
			Name: at.Name(uid, attempt, 1).String()}.String(), Time: noon}
	}
	version := func(digest string, step int64) rl.Lineage {
		if step == 0 {
			return rl.Genesis(digest)
		}
		return rl.Genesis(digest + string(rune('0'+step)))
	}
	of := func(digest string, attempt int32, step int64) tinker.Checkpoint {
		return state(attempt, step, version(digest, step), version(digest, step-1))
	}
	former := func(entries ...contract.FormerSettings) func(*contract.RunFile) {
		return func(f *contract.RunFile) { f.Attempt, f.Former = 9, entries }
	}
	changed := contract.FormerSettings{LastAttempt: 1, SpecDigest: "old", Changed: []string{"algorithm"}}
	cases := map[string]struct {
		states []tinker.Checkpoint
		rows   []string
		change func(*contract.RunFile)
		step   int64
		fresh  bool
		err    *SettingsError
	}{
		"no step is committed": {[]tinker.Checkpoint{of("old", 1, 0)}, nil, former(changed), 0, true,
			nil},
		"no step is committed, by names alone": {[]tinker.Checkpoint{of("old", 1, 0)}, nil, former(), 0, true, nil},
		"a step is committed": {[]tinker.Checkpoint{of("old", 1, 0), of("old", 1, 1)}, nil,
			former(changed), 0, false, &SettingsError{1, 1, []string{"algorithm"}}},
		"the state of the first version has expired": {[]tinker.Checkpoint{of("old", 1, 3)}, nil, former(changed), 0, false,
			&SettingsError{3, 1, []string{"algorithm"}}},
		"a step is committed, by its parent's name": {[]tinker.Checkpoint{of("old", 1, 1)}, nil, former(), 0, false,
			&SettingsError{1, 1, nil}},
		"three steps are committed, by names alone": {[]tinker.Checkpoint{of("old", 1, 1), of("old", 1, 2),
			of("old", 1, 3)}, nil, former(), 0, false, &SettingsError{3, 1, nil}},
		"the settings of the committed step are back": {[]tinker.Checkpoint{of("a", 1, 0), of("a", 1, 2)}, nil,
			former(contract.FormerSettings{LastAttempt: 1, SpecDigest: "a"},
				contract.FormerSettings{LastAttempt: 2, SpecDigest: "b"}), 2, false, nil},
		"an attempt with other settings has begun": {[]tinker.Checkpoint{of("a", 1, 2), of("b", 2, 0)}, nil,
			former(contract.FormerSettings{LastAttempt: 1, SpecDigest: "a"},
				contract.FormerSettings{LastAttempt: 2, SpecDigest: "b"}), 0, true, nil},
		"a row names a state that was never saved": {[]tinker.Checkpoint{of("old", 1, 0)},
			[]string{of("old", 1, 1).TinkerPath}, former(changed), 0, true, nil},
		"a late state of former settings is not older": {[]tinker.Checkpoint{of("old", 1, 2), of("a", 2, 1)}, nil,
			former(changed), 1, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := open(&fake{checkpoints: tc.states, rows: tc.rows}, tc.change)
			if err := o.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			loaded, err := o.Load(t.Context())
			var differs *SettingsError
			if errors.As(err, &differs) != (tc.err != nil) || err != nil && tc.err == nil || tc.err != nil &&
				differs.Error() != tc.err.Error() {
				t.Fatalf("Load fails with %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			if fresh := loaded.Model.Number == 1; fresh != tc.fresh || loaded.At.Step != tc.step {
				t.Errorf("Load = step %d, of a fresh model: %v; want step %d, %v", loaded.At.Step, fresh, tc.step, tc.fresh)
			}
		})
	}
}

// TestLoadAwaitsAnswer checks that Load fails, and may be tried again, while the endpoint does not say whether a step
// was committed with other settings.
func TestLoadAwaitsAnswer(t *testing.T) {
	outage := errors.New("the endpoint is unreachable")
	o := open(&fake{rows: []string{path(1, 2, tinker.KindState)}, existsErr: outage}, func(f *contract.RunFile) {
		f.Former = contract.SettingsHistory{{LastAttempt: 1, SpecDigest: "old"}}
	})
	if err := o.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Load(t.Context()); !errors.Is(err, outage) {
		t.Errorf("Load fails with %v, want %v", err, outage)
	}
}

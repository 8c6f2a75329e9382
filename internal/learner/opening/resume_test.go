// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const formerUID = "5a5a5a5a-0000-4000-8000-000000000005"

// savedBy returns the state of a step that an attempt of a run has saved.
func savedBy(runUID string, attempt int32, step int64) tinker.Checkpoint {
	at := checkpoints.Position{Version: rl.Version{Step: step, Lineage: lineage(step)}, Cursor: 4 * step,
		Parent: lineage(step - 1)}
	return tinker.Checkpoint{TinkerPath: tinker.Path{Run: "model", Kind: tinker.KindState,
		Name: at.Name(runUID, attempt, 1).String()}.String(), Time: noon}
}

// TestLoadOfFormerRun loads the newest state of the run that resumeFrom names only if the run has none itself,
// regardless of the numbers of attempts, and never begins anew.
func TestLoadOfFormerRun(t *testing.T) {
	metadata := func(spec string) []tinker.TrainingRun {
		return []tinker.TrainingRun{{TrainingRunID: "model", UserMetadata: tinker.Metadata{trainee.MetadataRun: formerUID,
			trainee.MetadataSpec: spec}}}
	}
	all := []tinker.Checkpoint{savedBy(formerUID, 7, 0), savedBy(formerUID, 7, 1), savedBy(formerUID, 7, 2)}
	cases := map[string]struct {
		fake   fake
		want   string
		former bool
		err    string
	}{
		"the newest state of the former run": {fake{checkpoints: all}, all[2].TinkerPath, true, ""},
		"a state of its own is newer": {fake{checkpoints: append(all[:3:3], savedBy(uid, 1, 1))},
			savedBy(uid, 1, 1).TinkerPath, false, ""},
		"its own state does not load": {fake{checkpoints: append(all[:3:3], savedBy(uid, 1, 2)),
			resumed: 1}, all[2].TinkerPath, true, ""},
		"its own state, and the former run's have expired": {fake{checkpoints: []tinker.Checkpoint{savedBy(uid, 1, 2)}},
			savedBy(uid, 1, 2).TinkerPath, false, ""},
		"rows lead to the settings": {fake{checkpoints: all[2:], origin: lineage(0)}, all[2].TinkerPath, true,
			""},
		"rows lead to other settings": {fake{checkpoints: all[2:], origin: rl.Genesis("other")}, "", false,
			"made step 2 with other settings"},
		"the model's metadata have the settings": {fake{checkpoints: all[2:], runs: metadata("a")}, all[2].TinkerPath, true,
			""},
		"the model's metadata have other settings": {fake{checkpoints: all[2:], runs: metadata("b")}, "", false,
			"made step 2 with other settings"},
		"nothing tells the settings": {fake{checkpoints: all[2:]}, "", false, "nothing says with which settings"},
		"no state":                   {fake{}, "", false, "knows a state of it"},
		"the states are those of a third run": {fake{checkpoints: []tinker.Checkpoint{savedBy(
			"6b6b6b6b-0000-4000-8000-000000000006", 1, 2)}}, "", false, "knows a state of it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := open(&tc.fake, func(f *contract.RunFile) { f.ResumeFrom = formerUID })
			if err := o.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			loaded, err := o.Load(t.Context())
			var refused *ResumeError
			switch {
			case tc.err == "" && err != nil:
				t.Fatal(err)
			case tc.err != "":
				if !errors.As(err, &refused) || !strings.Contains(refused.Problem, tc.err) || len(err.Error()) > 256 {
					t.Fatalf("Load fails with %v, want %q in at most 256 bytes", err, tc.err)
				}
				return
			}
			path, _ := tinker.ParsePath(tc.want)
			want, _ := rl.ParseCheckpointName(path.Name)
			if diff := cmp.Diff(checkpoints.PositionOf(want), loaded.At); diff != "" || loaded.Former != tc.former {
				t.Errorf("a state of the former run is loaded: %v, want %v; position (-want +got):\n%s", loaded.Former, tc.former,
					diff)
			}
		})
	}
}

// TestListUnloadsModelsOfFormerRun unloads all models of the run that resumeFrom names, since that run no longer
// exists, and no models of others.
func TestListUnloadsModelsOfFormerRun(t *testing.T) {
	model := func(id, run string) tinker.TrainingRun {
		return tinker.TrainingRun{TrainingRunID: id, UserMetadata: tinker.Metadata{trainee.MetadataRun: run,
			trainee.MetadataAttempt: "9"}}
	}
	f := &fake{runs: []tinker.TrainingRun{model("former", formerUID), model("foreign", other), model("own", uid)}}
	o := open(f, func(f *contract.RunFile) { f.ResumeFrom = formerUID })
	if err := o.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"former"}, f.unloaded); diff != "" {
		t.Errorf("unloaded models (-want +got):\n%s", diff)
	}
}

// TestNamesake checks which earlier run of the same name is found: the one that is worth most.
func TestNamesake(t *testing.T) {
	const third = "6b6b6b6b-0000-4000-8000-000000000006"
	of := func(id, run, name, spec string) tinker.TrainingRun {
		return tinker.TrainingRun{TrainingRunID: id, UserMetadata: tinker.Metadata{trainee.MetadataRun: run,
			trainee.MetadataName: name, trainee.MetadataSpec: spec}}
	}
	at := func(model, run string, step int64) tinker.Checkpoint {
		c := savedBy(run, 1, step)
		c.TinkerPath = strings.Replace(c.TinkerPath, "//model/", "//"+model+"/", 1)
		return c
	}
	cases := map[string]struct {
		runs   []tinker.TrainingRun
		states []tinker.Checkpoint
		stored *contract.EarlierRun
		want   *contract.EarlierRun
	}{
		"none": {nil, nil, nil, nil},
		"another name": {[]tinker.TrainingRun{of("m", formerUID, "n/other", "a")},
			[]tinker.Checkpoint{at("m", formerUID, 2)}, nil, nil},
		"no step": {[]tinker.TrainingRun{of("m", formerUID, "n/run", "a")},
			[]tinker.Checkpoint{at("m", formerUID, 0)}, nil, nil},
		"the newest step": {[]tinker.TrainingRun{of("m", formerUID, "n/run", "a")},
			[]tinker.Checkpoint{at("m", formerUID, 1), at("m", formerUID, 2)}, nil, &contract.EarlierRun{UID: formerUID, Step: 2,
				SameSettings: true}},
		"the same settings": {[]tinker.TrainingRun{of("m", formerUID, "n/run", "b"), of("o", third, "n/run", "a")},
			[]tinker.Checkpoint{at("m", formerUID, 9), at("o", third, 2)}, nil, &contract.EarlierRun{UID: third, Step: 2,
				SameSettings: true}},
		"by the artifact store": {nil, nil, &contract.EarlierRun{UID: third, Step: 4},
			&contract.EarlierRun{UID: third, Step: 4}},
		"it has a step itself": {[]tinker.TrainingRun{of("m", formerUID, "n/run", "a")},
			[]tinker.Checkpoint{at("m", formerUID, 2), at("own", uid, 1)}, nil, nil},
	}
	for name, tc := range cases {
		o := open(&fake{runs: tc.runs, checkpoints: tc.states}, func(f *contract.RunFile) {
			f.Run.Namespace, f.Run.Name = "n",
				"run"
		})
		o.Namesake = tc.stored
		if err := o.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, o.Namesake); diff != "" {
			t.Errorf("%s: earlier run (-want +got):\n%s", name, diff)
		}
	}
}

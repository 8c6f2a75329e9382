// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/export"
)

// paths returns the paths of a listing.
func paths(list []tinker.Checkpoint) []string {
	var paths []string
	for _, c := range list {
		paths = append(paths, c.TinkerPath)
	}
	return paths
}

func TestCheckpointListing(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	one, two := f.model(session, 0), f.model(session, 1)
	first := f.save(one, "a", 1, nil)
	f.clock.advance(time.Second)
	second := f.save(two, "a", 1, new(int64(60)))
	f.clock.advance(time.Second)
	third := f.saveSampler(one, "b", 2)
	steps := []struct {
		name  string
		wait  time.Duration
		edit  func() error
		all   []string
		ofOne []string
	}{
		{"all", 0, nil, []string{third, second, first}, []string{third, first}},
		{"after the expiry of the second", 59 * time.Second, nil, []string{third, first}, []string{third, first}},
		{"after a deletion", 0, func() error { return f.Checkpoints.Edit(parsePath(t, first), Delete) }, []string{third},
			[]string{third}},
		{"with an expiry that was set later", 0, func() error {
			return f.Checkpoints.Edit(parsePath(t, third), SetTTL(time.Minute))
		}, []string{third}, []string{third}},
		{"after that expiry", time.Minute, nil, nil, nil},
	}
	for _, step := range steps {
		f.clock.advance(step.wait)
		if step.edit != nil {
			if err := step.edit(); err != nil {
				t.Fatal(err)
			}
		}
		for run, want := range map[string][]string{"": step.all, one: step.ofOne} {
			list, err := f.Checkpoints.List(run)
			if err != nil || list == nil {
				t.Fatalf("%s: List(%q) = %v, %v", step.name, run, list, err)
			}
			if diff := cmp.Diff(want, paths(list)); diff != "" {
				t.Errorf("%s: checkpoints of %q (-want +got):\n%s", step.name, run, diff)
			}
		}
	}
	if _, err := f.Checkpoints.List("x"); category(err) != "not_found" {
		t.Errorf("List of an unknown run: %v, want not found", err)
	}
}

func TestRunListing(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	request := modelRequest(session, 0)
	request.UserMetadata = tinker.Metadata{"run": "a"}
	created, err := f.Models.Create(request)
	f.await(created, err)
	f.clock.advance(time.Minute)
	newer := f.model(session, 1)
	older := f.save(created.ModelID, "old", 1, nil)
	f.clock.advance(time.Second)
	newest := f.save(created.ModelID, "new", 2, nil)
	runs := f.Checkpoints.Runs("")
	if len(runs) != 2 || runs[0].TrainingRunID != newer || runs[1].TrainingRunID != created.ModelID {
		t.Fatalf("runs %+v, want the newest first", runs)
	}
	got, err := f.Checkpoints.Run(created.ModelID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runs[1], got); diff != "" {
		t.Errorf("the run alone and in the listing (-listing +alone):\n%s", diff)
	}
	if got.LastCheckpoint == nil || got.LastCheckpoint.TinkerPath != newest || got.LastSamplerCheckpoint != nil {
		t.Errorf("last checkpoints %+v and %+v, want %s rather than %s, and none", got.LastCheckpoint,
			got.LastSamplerCheckpoint, newest, older)
	}
	if got.UserMetadata["run"] != "a" || got.ModelOwner != Owner || *got.LoraRank != 2 ||
		!got.LastRequestTime.Equal(f.clock.Now()) {
		t.Errorf("run %+v", got)
	}
	if _, err := f.Checkpoints.Run("x"); category(err) != "not_found" {
		t.Errorf("an unknown run: %v, want not found", err)
	}
}

func TestEdits(t *testing.T) {
	f := newFixture(t)
	model := f.model(f.session(), 0)
	path := f.save(model, "a", 1, nil)
	steps := []struct {
		name string
		edit Edit
		want func(c checkpoint.Checkpoint) bool
	}{
		{"publish", Publish, func(c checkpoint.Checkpoint) bool { return c.Public }},
		{"unpublish", Unpublish, func(c checkpoint.Checkpoint) bool { return !c.Public }},
		{"set a TTL", SetTTL(time.Hour), func(c checkpoint.Checkpoint) bool {
			return c.Expires.Equal(f.clock.Now().Add(time.Hour))
		}},
		{"remove the TTL", SetTTL(0), func(c checkpoint.Checkpoint) bool { return c.Expires.IsZero() }},
	}
	for _, step := range steps {
		f.edit(parsePath(t, path), step.edit)
		if got, err := f.Checkpoints.Get(parsePath(t, path)); err != nil || !step.want(got) {
			t.Errorf("after %s: %+v, %v", step.name, got, err)
		}
	}
	unknown := tinker.Path{Run: model, Kind: tinker.KindState, Name: "none"}
	ephemeral := tinker.Path{Run: model, Kind: checkpoint.Ephemeral, Name: "1"}
	for name, edit := range map[string]Edit{"Delete": Delete, "Damage": Damage, "Publish": Publish,
		"SetTTL": SetTTL(time.Hour)} {
		for _, path := range []tinker.Path{unknown, ephemeral} {
			if err := f.Checkpoints.Edit(path, edit); category(err) != "not_found" {
				t.Errorf("%s of %s: %v, want not found", name, path, err)
			}
		}
	}
}

func TestEditMatching(t *testing.T) {
	f := newFixture(t)
	model := f.model(f.session(), 0)
	a, b := f.save(model, "a", 1, nil), f.save(model, "b", 2, nil)
	changed, err := f.Checkpoints.EditMatching(func(path string) bool { return strings.HasSuffix(path, "/a") }, Delete)
	if diff := cmp.Diff([]string{a}, changed); diff != "" || err != nil {
		t.Errorf("changed, %v (-want +got):\n%s", err, diff)
	}
	if list, err := f.Checkpoints.List(""); err != nil || !cmp.Equal([]string{b}, paths(list)) {
		t.Errorf("checkpoints %v, %v, want %s alone", paths(list), err, b)
	}
	if changed, err := f.Checkpoints.EditMatching(func(string) bool { return false }, Delete); err != nil ||
		changed == nil || len(changed) != 0 {
		t.Errorf("without a match: %#v, %v, want an empty slice", changed, err)
	}
}

func TestWeightsInfo(t *testing.T) {
	f := newFixture(t)
	path := f.save(f.model(f.session(), 0), "a", 1, nil)
	got, err := f.Checkpoints.WeightsInfo(tinker.WeightsInfoRequest{TinkerPath: path})
	want := tinker.WeightsInfo{
		BaseModel: baseModel, IsLora: true, LoraRank: new(2), TrainUnembed: new(true), TrainMLP: new(false),
		TrainAttn: new(false),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("info, %v (-want +got):\n%s", err, diff)
	}
	for path, want := range map[string]string{path + "2": "not_found", "a": "user", "": "user"} {
		if _, err := f.Checkpoints.WeightsInfo(tinker.WeightsInfoRequest{TinkerPath: path}); category(err) != want {
			t.Errorf("WeightsInfo(%q) = %v, want an error of category %q", path, err, want)
		}
	}
}

func TestArchive(t *testing.T) {
	f := newFixture(t)
	model := f.model(f.session(), 0)
	state := f.save(model, "state", 1, nil)
	sampler := f.saveSampler(model, "sampler", 2)
	for path, kind := range map[string]string{state: "weights", sampler: "sampler_weights"} {
		archive, err := f.Checkpoints.Archive(parsePath(t, path))
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for reader := tar.NewReader(bytes.NewReader(archive)); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			data, readErr := io.ReadAll(reader)
			if err := errors.Join(err, readErr); err != nil {
				t.Fatal(err)
			}
			files[header.Name] = string(data)
		}
		want := `{"base_model":"base/model","kind":"` + kind +
			`","lora_rank":2,"train_unembed":true,"train_mlp":false,"train_attn":false}`
		if path == state {
			if files[peftFolder+export.MatricesFile] == "" || !strings.Contains(files[peftFolder+export.ConfigFile],
				`"peft_type": "LORA"`) {
				t.Errorf("the archive of the state lacks the adapter in the format of PEFT: %q", slices.Sorted(maps.Keys(files)))
			}
			delete(files, peftFolder+export.MatricesFile)
			delete(files, peftFolder+export.ConfigFile)
		}
		if len(files) != 2 || files[export.ConfigFile] != want || files[adapterFile] == "" {
			t.Errorf("%d files with the configuration %s, want %s", len(files), files[export.ConfigFile], want)
		}
	}
	if _, err := f.Checkpoints.Archive(tinker.Path{Run: model, Kind: tinker.KindState,
		Name: "none"}); category(err) != "not_found" {
		t.Errorf("an unknown checkpoint: %v, want not found", err)
	}
}

func TestLoadState(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	path := f.save(f.model(session, 0), "a", 1, nil)
	cases := map[string]struct {
		path    string
		seq     int64
		refused string // category of the error of the request
		failure tinker.Category
	}{
		"a state":                    {path: path, seq: 1},
		"not as the first operation": {path: path, seq: 2, refused: "user"},
		"sampler weights": {path: strings.Replace(path, "weights", "sampler_weights", 1), seq: 1,
			refused: "user"},
		"an invalid path":             {path: "a", seq: 1, refused: "user"},
		"a checkpoint that is absent": {path: path + "2", seq: 1, failure: tinker.CategoryUser},
	}
	number := 0
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			number++
			request := tinker.LoadWeightsRequest{ModelID: f.model(session, number), Path: tc.path, SeqID: tc.seq,
				Optimizer: true}
			submitted, err := f.Models.LoadState(request)
			if category(err) != tc.refused {
				t.Fatalf("LoadState = %v, want an error of category %q", err, tc.refused)
			}
			if err != nil {
				return
			}
			if failure := f.failure(submitted, nil); failure.Category != tc.failure {
				t.Errorf("result %+v, want category %q", failure, tc.failure)
			}
		})
	}
	if _, err := f.Models.LoadState(tinker.LoadWeightsRequest{Session: session, Path: path}); category(err) != "user" {
		t.Errorf("without a model and a number: %v, want a user error", err)
	}
	created, err := f.Models.LoadState(tinker.LoadWeightsRequest{Session: session, Path: path, ModelSeq: new(99)})
	if failure := f.failure(created, err); failure.Error != "" || created.ModelID != session+":train:99" {
		t.Errorf("a new model: %+v, %+v", created, failure)
	}
}

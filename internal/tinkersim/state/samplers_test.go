// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

func TestCreateSamplingSession(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	model := f.model(session, 0)
	state, weights := f.save(model, "state", 1, nil), f.saveSampler(model, "weights", 2)
	cases := map[string]struct {
		base, path string
		category   string // of the error
		want       tinker.Sampler
	}{
		"a base model":                  {base: baseModel, want: tinker.Sampler{BaseModel: baseModel}},
		"an alias":                      {base: "an/alias", want: tinker.Sampler{BaseModel: "an/alias"}},
		"sampler weights":               {path: weights, want: tinker.Sampler{BaseModel: baseModel, ModelPath: &weights}},
		"a training state":              {path: state, want: tinker.Sampler{BaseModel: baseModel, ModelPath: &state}},
		"an unknown base model":         {base: "x", category: "user"},
		"neither":                       {category: "user"},
		"an invalid path":               {path: "weights/one", category: "user"},
		"an unknown checkpoint":         {path: weights + "2", category: "not_found"},
		"a checkpoint of a missing run": {path: "tinker://x:train:0/weights/a", category: "not_found"},
		"an ephemeral checkpoint":       {path: "tinker://" + model + "/ephemeral/1", category: "user"},
	}
	seq := int64(0)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seq++
			created, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: session, Seq: seq, BaseModel: tc.base,
				ModelPath: tc.path})
			if got := category(err); got != tc.category {
				t.Fatalf("Create = %v, want an error of category %q", err, tc.category)
			}
			if err != nil {
				return
			}
			tc.want.SamplerID = created.SamplingSession
			got, err := f.Samplers.Info(created.SamplingSession)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sampler (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreateSamplingSessionOnce(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	request := tinker.CreateSamplingSessionRequest{Session: session, Seq: 4, BaseModel: baseModel}
	for range 2 {
		created, err := f.Samplers.Create(request)
		if err != nil || created.SamplingSession != session+":sample:4" {
			t.Errorf("Create = %+v, %v", created, err)
		}
	}
	if info, err := f.Sessions.Get(session); err != nil || len(info.SamplerIDs) != 1 {
		t.Errorf("session %+v, %v, want one sampler", info, err)
	}
	request.BaseModel, request.ModelPath = "", f.saveSampler(f.model(session, 0), "a", 1)
	if _, err := f.Samplers.Create(request); category(err) != "user" {
		t.Errorf("the same number with other weights: %v, want a user error", err)
	}
}

func TestSamplerLookup(t *testing.T) {
	cases := map[string]struct {
		change func(f *fixture, path tinker.Path)
		want   string // category of the error
	}{
		"unchanged": {func(*fixture, tinker.Path) {}, ""},
		"published": {func(f *fixture, path tinker.Path) { f.edit(path, Publish) }, ""},
		"deleted":   {func(f *fixture, path tinker.Path) { f.edit(path, Delete) }, "not_found"},
		"before its expiry": {func(f *fixture, path tinker.Path) {
			f.edit(path, SetTTL(2*time.Minute))
			f.clock.advance(time.Minute)
		}, ""},
		"expired": {func(f *fixture, path tinker.Path) { f.edit(path, SetTTL(time.Minute)); f.clock.advance(time.Minute) },
			"not_found"},
		"overwritten with other weights": {func(f *fixture, path tinker.Path) {
			save := checkpoint.Save{Path: path, Data: []byte("other"), Overwrite: true}
			if _, err := f.shared.store.Save(f.t.Context(), save); err != nil {
				f.t.Fatal(err)
			}
		}, "not_found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			session := f.session()
			path := f.saveSampler(f.model(session, 0), "a", 1)
			created, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: session, Seq: 1, ModelPath: path})
			if err != nil {
				t.Fatal(err)
			}
			tc.change(f, parsePath(t, path))
			if _, err := f.Samplers.Info(created.SamplingSession); category(err) != tc.want {
				t.Errorf("Info = %v, want an error of category %q", err, tc.want)
			}
		})
	}
	f := newFixture(t)
	if _, err := f.Samplers.Info("x"); category(err) != "not_found" {
		t.Errorf("Info of an unknown sampler: %v, want not found", err)
	}
}

// edit edits a checkpoint.
func (f *fixture) edit(path tinker.Path, edit Edit) {
	f.t.Helper()
	if err := f.Checkpoints.Edit(path, edit); err != nil {
		f.t.Fatal(err)
	}
}

func TestMissingFaultHidesWeights(t *testing.T) {
	f := newFixture(t, fault.Rule{Op: tinker.TypeCreateSamplingSession, Do: fault.Missing})
	session := f.session()
	request := tinker.CreateSamplingSessionRequest{Session: session, Seq: 1, ModelPath: f.saveSampler(f.model(session, 0),
		"a", 1)}
	for _, want := range []string{"not_found", ""} {
		if _, err := f.Samplers.Create(request); category(err) != want {
			t.Errorf("Create = %v, want an error of category %q", err, want)
		}
	}
}

func TestEphemeralSamplerIsNotListed(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	model := f.model(session, 0)
	submitted, err := f.Models.SaveSampler(tinker.SaveSamplerRequest{ModelID: model, SeqID: 1,
		SamplingSessionSeq: new(int64(5))})
	f.await(submitted, err)
	info, err := f.Samplers.Info(session + ":sample:5")
	if err != nil || info.ModelPath != nil || info.BaseModel != baseModel {
		t.Errorf("Info = %+v, %v", info, err)
	}
	if list, err := f.Checkpoints.List(model); err != nil || len(list) != 0 {
		t.Errorf("the ephemeral checkpoint is listed: %+v, %v", list, err)
	}
	again, err := f.Models.SaveSampler(tinker.SaveSamplerRequest{ModelID: model, SeqID: 1,
		SamplingSessionSeq: new(int64(6))})
	if err != nil || again.RequestID != submitted.RequestID {
		t.Errorf("a repetition with a new number: %+v, %v", again, err)
	}
	for name, request := range map[string]tinker.SaveSamplerRequest{
		"neither a name nor a number": {ModelID: model, SeqID: 2},
		"a name and a number":         {ModelID: model, SeqID: 2, Path: "a", SamplingSessionSeq: new(int64(6))},
	} {
		if _, err := f.Models.SaveSampler(request); category(err) != "user" {
			t.Errorf("%s: %v, want a user error", name, err)
		}
	}
}

func TestLoadWeights(t *testing.T) {
	f := newFixture(t)
	model := f.model(f.session(), 0)
	paths := []string{f.save(model, "state", 1, nil), f.saveSampler(model, "weights", 2)}
	for _, path := range paths {
		saved, err := f.Checkpoints.Get(parsePath(t, path))
		if err != nil {
			t.Fatal(err)
		}
		if weights, err := f.shared.loadWeights(string(keyOf(saved))); err != nil || weights == nil {
			t.Errorf("loadWeights(%s) = %v", keyOf(saved), err)
		}
	}
	for key, wantError := range map[string]bool{
		"base": false, "base" + baseModel: false, "basex": true, "x:train:0/weights/a/digest": true,
		model + "/weights/none/digest": true,
	} {
		if _, err := f.shared.loadWeights(key); (err != nil) != wantError {
			t.Errorf("loadWeights(%s) = %v", key, err)
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

func TestCreateModelOnce(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	first, err := f.Models.Create(modelRequest(session, 0))
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Models.Create(modelRequest(session, 0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("a repetition (-first +again):\n%s", diff)
	}
	other := modelRequest(session, 0)
	other.Lora.Rank = 4
	if _, err := f.Models.Create(other); category(err) != "user" {
		t.Errorf("another model with the same number: %v, want a user error", err)
	}
	elsewhere := f.model(f.session(), 0)
	if elsewhere == first.ModelID {
		t.Errorf("the same number in another session has the same id %s", elsewhere)
	}
	f.await(first, nil)
	if runs := f.Checkpoints.Runs(""); len(runs) != 2 {
		t.Errorf("%d runs, want one for each session", len(runs))
	}
}

func TestCreateModelFailure(t *testing.T) {
	cases := map[string]struct {
		change func(*tinker.CreateModelRequest)
		rules  []fault.Rule
		want   tinker.FailedResult
	}{
		"an unknown base model": {
			change: func(r *tinker.CreateModelRequest) { r.BaseModel = "x/y" },
			want:   tinker.FailedResult{Error: `base model "x/y" is not supported`, Category: tinker.CategoryUser},
		},
		"a scripted failure": {
			change: func(*tinker.CreateModelRequest) {},
			rules:  []fault.Rule{{Op: tinker.TypeCreateModel, Do: fault.Fail, Message: "no GPU"}},
			want:   tinker.FailedResult{Error: "no GPU", Category: tinker.CategoryServer},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.rules...)
			request := modelRequest(f.session(), 0)
			tc.change(&request)
			created, err := f.Models.Create(request)
			if diff := cmp.Diff(tc.want, f.failure(created, err)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
				_, err := f.Models.Info(tinker.ModelRequest{ModelID: created.ModelID})
				if category(err) == "not_found" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("Info of the failed model: %v, want not found", err)
				}
			}
			if runs := f.Checkpoints.Runs(""); len(runs) != 0 {
				t.Errorf("the failed model is listed: %+v", runs)
			}
		})
	}
}

func TestModelInfo(t *testing.T) {
	f := newFixture(t)
	model := f.model(f.session(), 0)
	got, err := f.Models.Info(tinker.ModelRequest{ModelID: model})
	if err != nil {
		t.Fatal(err)
	}
	want := tinker.ModelInfo{
		Type: tinker.TypeGetInfo, ModelID: model, IsLora: new(true), LoraRank: new(2), ModelName: baseModel,
		ModelData: tinker.ModelData{Arch: "tinkersim", ModelName: baseModel, TokenizerID: baseModel},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

func TestUnloadModel(t *testing.T) {
	f := newFixture(t, fault.Rule{ID: "h", Op: tinker.TypeOptimStep, Do: fault.Hold})
	session := f.session()
	model, other := f.model(session, 0), f.model(session, 1)
	held, err := f.Models.OptimStep(tinker.OptimStepRequest{ModelID: model, SeqID: 1})
	if err != nil {
		t.Fatal(err)
	}
	queued, err := f.Models.SaveWeights(tinker.SaveWeightsRequest{ModelID: model, Path: "never", SeqID: 2})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a repetition succeeds as well
		unloaded, err := f.Models.Unload(tinker.ModelRequest{ModelID: model})
		if failure := f.failure(unloaded, err); failure.Error != "" {
			t.Fatal(failure.Error)
		}
	}
	want := tinker.FailedResult{Error: errModelRemoved.Error(), Category: tinker.CategoryServer}
	for name, submitted := range map[string]tinker.FutureResponse{"held": held, "queued": queued} {
		if diff := cmp.Diff(want, f.failure(submitted, nil)); diff != "" {
			t.Errorf("the %s operation (-want +got):\n%s", name, diff)
		}
	}
	if list, err := f.Checkpoints.List(model); err != nil || len(list) != 0 {
		t.Errorf("checkpoints after the unload: %+v, %v", list, err)
	}
	if _, err := f.Models.OptimStep(tinker.OptimStepRequest{ModelID: model, SeqID: 3}); category(err) != "not_found" {
		t.Errorf("an operation after the unload: %v, want not found", err)
	}
	if _, err := f.Models.Unload(tinker.ModelRequest{ModelID: "x"}); category(err) != "not_found" {
		t.Errorf("Unload of an unknown model: %v, want not found", err)
	}
	f.save(other, "kept", 1, nil)
}

func TestCapabilities(t *testing.T) {
	f := newFixture(t)
	var names []string
	for _, m := range f.Capabilities().SupportedModels {
		names = append(names, m.ModelName)
	}
	if diff := cmp.Diff([]string{baseModel, "an/alias", countdownModel}, names); diff != "" {
		t.Errorf("base models (-want +got):\n%s", diff)
	}
	for name, want := range map[string]bool{baseModel: true, "an/alias": true, "x": false, "": false} {
		if got := f.HasBaseModel(name); got != want {
			t.Errorf("HasBaseModel(%q) = %v", name, got)
		}
	}
}

func TestClosedState(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	model := f.model(session, 0)
	open, err := f.Models.ForwardBackward(tinker.ForwardBackwardRequest{ModelID: model, SeqID: 7}) // waits after a gap
	if err != nil {
		t.Fatal(err)
	}
	before := f.Stats()
	f.Close()
	if _, _, ok, _ := f.Await(t.Context(), open.RequestID, 0); ok {
		t.Error("an operation has a result after Close")
	}
	if _, err := f.Models.Create(modelRequest(session, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Create after Close: %v, want ErrClosed", err)
	}
	if _, err := f.Models.Unload(tinker.ModelRequest{ModelID: model}); err == nil {
		t.Error("Unload after Close succeeded")
	}
	if diff := cmp.Diff(before, f.Stats()); diff != "" {
		t.Errorf("counters (-before +after Close):\n%s", diff)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// countdownModel is the name of the base model that was pretrained on Countdown.
const countdownModel = "countdown/model"

// TestBaseModelsHaveTheirOwnWeights samples and trains two base models, whose states do not replace each other.
func TestBaseModelsHaveTheirOwnWeights(t *testing.T) {
	f := newFixture(t)
	weights := map[string][]byte{}
	for _, name := range []string{baseModel, "an/alias", countdownModel} {
		loaded, err := f.shared.loadWeights(string(f.shared.bases.key(name)))
		if err != nil {
			t.Fatal(err)
		}
		weights[name] = loaded.Marshal()
	}
	if !bytes.Equal(weights[baseModel], weights["an/alias"]) || bytes.Equal(weights[baseModel], weights[countdownModel]) {
		t.Error("an alias has the weights of the base model, and the other base model its own")
	}

	session := f.session()
	request := modelRequest(session, 0)
	request.BaseModel = countdownModel
	created, err := f.Models.Create(request)
	if failure := f.failure(created, err); failure.Error != "" {
		t.Fatal(failure.Error)
	}
	path := f.save(created.ModelID, "state", 1, nil)
	if _, err := f.Checkpoints.Archive(parsePath(t, path)); err != nil {
		t.Errorf("the archive of a state: %v", err)
	}
	other, err := f.Models.Create(modelRequest(session, 1))
	if failure := f.failure(other, err); failure.Error != "" {
		t.Fatal(failure.Error)
	}
	failure := f.failure(f.Models.LoadState(tinker.LoadWeightsRequest{ModelID: other.ModelID, SeqID: 1, Path: path}))
	if failure.Category != tinker.CategoryUser || !strings.Contains(failure.Error, "made with another base model than "+
		baseModel) {
		t.Errorf("loading the state into a model of another base: %+v", failure)
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// weightsKey names weights that never change: another save under the same path has another key.
type weightsKey string

// baseKey is the key of the weights of model.Base(). For any other base model, its name follows.
const baseKey weightsKey = "base"

// isBase reports whether the weights belong to a base model. No id of a run begins with baseKey.
func (k weightsKey) isBase() bool { return strings.HasPrefix(string(k), string(baseKey)) }

func keyOf(c checkpoint.Checkpoint) weightsKey {
	return weightsKey(strings.Join([]string{c.Run, string(c.Kind), c.Name, c.Digest}, "/"))
}

// loadWeights loads the weights of a key for the engine.
func (sh *shared) loadWeights(key string) (*model.Weights, error) {
	if name, ok := strings.CutPrefix(key, string(baseKey)); ok {
		return sh.bases.weights(name)
	}
	parts := strings.Split(key, "/")
	path := tinker.Path{Run: parts[0], Kind: tinker.Kind(parts[1]), Name: parts[2]}
	run, err := sh.store.Run(path.Run)
	if err != nil {
		return nil, err
	}
	base, err := sh.bases.get(run.BaseModel)
	if err != nil {
		return nil, err
	}
	data, err := sh.store.Read(path)
	if err != nil {
		return nil, err
	}
	if path.Kind != tinker.KindState {
		return model.UnmarshalWeights(base, data)
	}
	adapter, err := model.UnmarshalState(base, data, false)
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	return adapter.Snapshot(), nil
}

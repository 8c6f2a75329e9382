// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// LoadSampler submits a load of sampler weights into the model that saved them, for servers that sample from the
// adapter that is being trained. The gradient and the Adam state stay as they are. It needs Options.KeepSamplers.
func (m *Models) LoadSampler(id string, seq int64, name string) error {
	_, err := m.submit(id, submission{
		op: "load_sampler", seq: seq, name: name, digest: digestOf(name), kind: stats.Saving,
		do: func(t *trainer, _ *operation) (future.Result, error) {
			params, ok := t.samplers[name]
			if !ok {
				return future.Result{}, fmt.Errorf("loading sampler weights: the model has not saved %q", name)
			}
			t.adapter.SetParameters(params)
			return jsonResult(struct{}{}), nil
		},
	})
	return err
}

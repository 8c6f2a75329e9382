// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import "context"

// Unloaded lists the models that the attempts of the run have unloaded, as far as that is recorded.
func (j *Journal) Unloaded() []string {
	var models []string
	if j.store == nil || j.store.files.readJSON(unloadedFile, &models) != nil {
		return nil
	}
	return models
}

// SetUnloaded records the models that the attempts of the run have unloaded.
func (j *Journal) SetUnloaded(ctx context.Context, models []string) error {
	if j.store == nil {
		return nil
	}
	return j.call(ctx, "recording which models are unloaded", func() error {
		return j.store.files.writeJSON(unloadedFile, models)
	})
}

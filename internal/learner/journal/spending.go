// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/learner/store"
)

// Spending returns what the attempts before have recorded, and whether one of them did.
func (j *Journal) Spending() (store.Spending, bool) {
	if j.store == nil {
		return store.Spending{}, false
	}
	return j.store.Spending(j.config.Attempt)
}

// WriteSpending records what was spent.
func (j *Journal) WriteSpending(record store.Spending) error {
	return j.store.WriteSpending(j.config.Attempt, record)
}

// InsistOnSpending records what was spent, and waits for the store.
func (j *Journal) InsistOnSpending(ctx context.Context, record store.Spending) error {
	return j.insist(ctx, "recording what was spent", func() error { return j.WriteSpending(record) })
}

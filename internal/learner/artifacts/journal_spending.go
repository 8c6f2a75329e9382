// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"sync"
	"sync/atomic"
)

// Spending returns the newest record of earlier attempts, and whether there is one.
func (j *Journal) Spending() (Spending, bool) {
	if j.store == nil {
		return Spending{}, false
	}
	return j.store.Spending(j.config.Attempt)
}

// WriteSpending writes a record of spending. A call that takes long is reported, and ends with ctx or once the learner
// gives up.
func (j *Journal) WriteSpending(ctx context.Context, record Spending) error {
	return j.call(ctx, recordingSpending, j.writeSpending(record))
}

// InsistOnSpending writes a record of spending, and waits for the store.
func (j *Journal) InsistOnSpending(ctx context.Context, record Spending) error {
	return j.insist(ctx, recordingSpending, j.writeSpending(record))
}

const recordingSpending = "recording what was spent"

// spendingWrites orders the records of spending: a write that is no longer awaited does not replace a newer record.
type spendingWrites struct {
	asked atomic.Int64
	mu    sync.Mutex
	done  int64
}

// writeSpending returns the call of the store that writes a record, unless a newer one is written.
func (j *Journal) writeSpending(record Spending) func() error {
	number := j.spending.asked.Add(1)
	return func() error {
		j.spending.mu.Lock()
		defer j.spending.mu.Unlock()
		if number < j.spending.done {
			return nil
		}
		err := j.store.WriteSpending(j.config.Attempt, record)
		if err == nil {
			j.spending.done = number
		}
		return err
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Batches cuts a stream of rows into batches. Each row takes a slot. The stream has all rows once in each epoch, in
// another permutation if its sources are shuffled. A batch may have the last rows of an epoch and the first rows of
// the next.
type Batches struct {
	Stream *rl.Stream
	// Size is the number of usable rows of a batch.
	Size int
}

// Batch is the data of one step.
type Batch struct {
	// First is the batch's first slot, and Next the first slot of the next batch: the cursor from which a run continues.
	First, Next int64
	Datums      []Datum
	// Slots are the slots of the datums.
	Slots []int64
	// Tombstones are the slots between First and Next without a datum.
	Tombstones []Tombstone
}

// Tombstone is a slot whose row is not trained on.
type Tombstone struct {
	Slot     int64
	Task     rl.Task
	Unusable *Unusable
}

// Load returns the datum of a row. An *Unusable is recorded; any other error ends the batch.
type Load func(ctx context.Context, task rl.Task) (Datum, error)

// NoRowError reports that a whole epoch of rows is not usable.
type NoRowError struct {
	// Rows are the numbers of rows by the reason why they are not usable.
	Rows map[Reason]int64
	// Example is one of the rows.
	Example Tombstone
}

// Error implements error.
func (e *NoRowError) Error() string {
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(e.Rows)) {
		counts = append(counts, fmt.Sprintf("%s: %d", reason, e.Rows[reason]))
	}
	return fmt.Sprintf("no row can be trained on (%s); row %d of split %s, for example: %v",
		strings.Join(counts, ", "), e.Example.Task.Index+1, e.Example.Task.Split, e.Example.Unusable.Err)
}

// Next returns the batch that begins at a cursor, which is 0 for the first batch. The same cursor gives the same batch.
// It fails with a *NoRowError if an epoch has no usable row from its first slot to its last.
func (b Batches) Next(ctx context.Context, cursor int64, load Load) (Batch, error) {
	batch := Batch{First: cursor, Next: cursor}
	rows := b.Stream.Tasks()
	epoch := (cursor + rows - 1) / rows * rows // the first slot of the first epoch that has no usable row so far
	for ; len(batch.Datums) < b.Size; batch.Next++ {
		if batch.Next == epoch+rows {
			return batch, batch.noRow(rows)
		}
		task := b.Stream.Task(batch.Next)
		datum, err := load(ctx, task)
		var reason *Unusable
		switch {
		case errors.As(err, &reason):
			batch.Tombstones = append(batch.Tombstones, Tombstone{batch.Next, task, reason})
		case err != nil:
			return batch, fmt.Errorf("loading row %d of split %s: %w", task.Index+1, task.Split, err)
		default:
			batch.Datums, batch.Slots = append(batch.Datums, datum), append(batch.Slots, batch.Next)
			epoch = (batch.Next + rows) / rows * rows
		}
	}
	return batch, nil
}

// noRow returns an error that counts the last tombstones by reason.
func (b Batch) noRow(last int64) *NoRowError {
	out := &NoRowError{Rows: map[Reason]int64{}}
	for _, t := range b.Tombstones[int64(len(b.Tombstones))-last:] {
		out.Rows[t.Unusable.Reason]++
		out.Example = t
	}
	return out
}

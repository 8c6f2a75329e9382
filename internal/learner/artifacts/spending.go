// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
)

// Spending is the spending of a run, as the learner of one attempt knows it.
type Spending struct {
	// Earlier is the usage of the learners of earlier attempts, and Own the usage of this learner.
	Earlier spending.Usage `json:"earlier"`
	Own     spending.Usage `json:"own"`
	// Granted is the maximum of this learner's tokens until the next record.
	Granted int64 `json:"granted"`
	// Workers are all worker processes that ever reported, by the name of the process.
	Workers map[string]WorkerSpending `json:"workers,omitempty"`
	// Held is the usage, reported by processes of earlier versions of the program, of groups that others may have been
	// given as well. Shown is the reported usage of the run.
	Held  spending.Usage `json:"held"`
	Shown spending.Usage `json:"shown"`
	// Priced are the tokens of Shown that have a price, with their cost; nil while a price is not known, and in records of
	// earlier versions of the program.
	Priced *spending.Priced `json:"priced,omitempty"`
	// Checked is the number of tokens that were trained on before the run began.
	Checked int64 `json:"checked,omitempty"`
	// Seconds of training.
	Seconds float64 `json:"seconds"`
}

// WorkerSpending is the spending of one worker process.
type WorkerSpending struct {
	// Name of the worker.
	Name string         `json:"name"`
	Used spending.Usage `json:"used"`
	// Held is the part of Used that belongs to groups that another process was given after this one, and Uncovered the
	// part that belongs to groups that no state covers. Next is the maximum cost of its leases since then.
	Held      spending.Usage `json:"held,omitzero"`
	Uncovered spending.Usage `json:"uncovered,omitzero"`
	Next      int64          `json:"next,omitempty"`
	// Lost is set once the worker is no longer expected, so that it is given no further leases. Absent is set if others
	// may have been given its groups since it said Hello to a learner.
	Lost   bool `json:"lost,omitempty"`
	Absent bool `json:"absent,omitempty"`
	// Among is the number of workers, including this one, that had leases when it last reported.
	Among int64 `json:"among,omitempty"`
}

const spendingDir = "spending"

// WriteSpending makes an attempt's record of spending durable.
func (s *Store) WriteSpending(attempt int32, record Spending) error {
	if err := s.files.writeJSON(spendingName(attempt), record); err != nil {
		return fmt.Errorf("writing what was spent: %w", err)
	}
	return nil
}

// Spending reads the newest record of an attempt before the given one, and reports whether there is any. The record
// of attempt 0 is the record of the run that this run continues.
func (s *Store) Spending(before int32) (Spending, bool) {
	for attempt := before - 1; attempt >= 0; attempt-- {
		var record Spending
		if s.files.readJSON(spendingName(attempt), &record) == nil {
			_ = s.files.price(&record, attempt) // Without a run file the tokens cost what the next attempt pays.
			return record, true
		}
	}
	return Spending{}, false
}

// price adds the cost to a record of an earlier version of the program, which has none. The prices are the prices in
// the run file of the record's attempt, which that version used. If there is no such file, or it has no prices, price
// changes nothing.
func (f *folder) price(record *Spending, attempt int32) error {
	if record.Priced != nil {
		return nil
	}
	data, err := f.original(specName(attempt))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading prices: %w", err)
	}
	var file struct {
		Prices *spending.Prices `json:"prices"`
	}
	if json.Unmarshal(data, &file) == nil && file.Prices != nil {
		priced := spending.Priced{}.Grow(record.Shown, *file.Prices)
		record.Priced = &priced
	}
	return nil
}

func spendingName(attempt int32) string {
	return path.Join(spendingDir, fmt.Sprintf("%d.json", attempt))
}

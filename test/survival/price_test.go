// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
)

// pricesOf returns prices that are a multiple of one another.
func pricesOf(times float64) *spending.Prices {
	return &spending.Prices{Policy: spending.Price{Prompt: 100 * times, Sampled: 200 * times, Trained: 300 * times}}
}

// dollars returns a cost for a message.
func dollars(usd *float64) string {
	if usd == nil {
		return "an unknown sum"
	}
	return strconv.FormatFloat(*usd, 'g', -1, 64)
}

// recordedUsage returns the usage without unconfirmed tokens that an attempt of the fixture's run has recorded.
func (w *fixture) recordedUsage(attempt int) spending.Usage {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.artifacts, w.file.Run.UID, "spending", strconv.Itoa(attempt)+".json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var record artifacts.Spending
	if err := json.Unmarshal(data, &record); err != nil {
		w.t.Fatal(err)
	}
	record.Shown.UnconfirmedTokens = 0
	return record.Shown
}

// TestChangedPricesLeaveWhatWasSpent changes the prices while a learner is dead: the tokens that it had recorded keep
// their price. The third learner knows no price, and the tokens of its attempt cost what the fourth one pays.
func TestChangedPricesLeaveWhatWasSpent(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"attempts": false, "a run that continues a deleted one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = 4 })
			w.startWorker("w0", behavior{})
			want, before, second := 0.0, spending.Usage{}, 2
			count := func(attempt int, prices *spending.Prices) {
				used := w.recordedUsage(attempt)
				want += prices.USD(used) - prices.USD(before)
				before = used
			}
			w.file.Prices = pricesOf(1)
			<-w.startLearner(1, w.dieAt("row.written", 2)).done
			count(1, pricesOf(1))
			if deleted {
				w.createAnew()
				w.startWorker("w1", behavior{})
				second = 1
			}
			w.file.Prices = pricesOf(5)
			<-w.startLearner(int32(second), w.dieAt("row.written", 3)).done
			count(second, pricesOf(5))
			w.file.Prices = nil
			<-w.startLearner(int32(second+1), w.dieAt("row.written", 4)).done
			w.file.Prices = pricesOf(0.25)
			verdict := w.waitFor(w.startLearner(int32(second+2), nil), contract.CauseCompleted)
			want += pricesOf(0.25).USD(verdict.Progress.Usage) - pricesOf(0.25).USD(before)
			if got := verdict.Progress.EstimatedUSD; got == nil || math.Abs(*got-want) > 1e-9 {
				t.Errorf("the run cost %v, want %v: each token at the price when it was recorded", dollars(got), want)
			}
			rows := w.rows()
			for i, row := range rows {
				if unknown := row.Attempt == int32(second+1); unknown != (row.USD == nil) ||
					i > 0 && rows[i-1].USD != nil && row.USD != nil && *row.USD < *rows[i-1].USD {
					t.Errorf("row %d of attempt %d cost %v", row.Step, row.Attempt, dollars(row.USD))
				}
			}
			first := rows[0].Usage
			first.UnconfirmedTokens = 0
			if rows[0].USD == nil || math.Abs(*rows[0].USD-pricesOf(1).USD(first)) > 1e-9 {
				t.Errorf("the first row cost %v, want %v", dollars(rows[0].USD), pricesOf(1).USD(first))
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/evaluation"
	"github.com/tinker-operator/tinker-operator/internal/learner/ledger"
	"github.com/tinker-operator/tinker-operator/internal/learner/report"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// errBudget ends a learner whose run has reached its budget. The learner stops at a saved state, like a learner that
// drains.
var errBudget = fmt.Errorf("%w because of the budget", errDrained)

// spendings records the spending of a run, and compares it with the budget.
type spendings struct {
	budget  *spending.Budget
	ledger  *ledger.Ledger
	journal *artifacts.Journal
	status  *report.Status
	logger  *slog.Logger
}

// reachedLimit returns the limit of the budget that is reached; empty if the run may continue.
func (s *spendings) reachedLimit() string {
	spent := s.ledger.Spent()
	usd := 0.0
	if spent.Cost != nil {
		usd = spent.Cost.Total()
	}
	return s.budget.Reached(spent.Usage, usd)
}

// check returns an error once the run has reached its budget.
func (s *spendings) check() error {
	if limit := s.reachedLimit(); limit != "" {
		return fmt.Errorf("%w: %s", errBudget, limit)
	}
	return nil
}

// awaitEvaluations waits until the evaluations have ended or the run has reached its budget, which it checks at each
// tick.
func (s *spendings) awaitEvaluations(soft context.Context, evaluator *evaluation.Evaluator, tick time.Duration) error {
	ctx, stop := context.WithCancelCause(soft)
	defer stop(nil)
	if s.budget != nil {
		go func() {
			for wait.Sleep(ctx, tick) == nil {
				if err := s.check(); err != nil {
					stop(err)
					evaluator.Stop()
				}
			}
		}()
	}
	return evaluator.Wait(ctx)
}

// open notes that a version was loaded, and returns the last step up to which spending is known. If no attempt of the
// run has recorded the spending, it is taken from the newest readable row and from the results of the evaluations.
// The usage of the version includes the tokens with which held-out rows were measured.
func (s *spendings) open(v rl.Version, measured *heldOut) (known int64) {
	if s.ledger.Restored() {
		known = v.Step
	}
	for version := range s.journal.Chain(v) {
		if version.Row != nil {
			s.ledger.RestoreRow(s.usageIn(*version.Row), version.Row.Priced(), version.Row.TrainingSeconds)
			known = max(known, version.Step)
			break
		}
		if version.Step > 0 {
			s.logger.Warn("row of a step is missing or damaged", "step", version.Step)
		}
	}
	var trained *int64
	if row, err := s.journal.Row(v); err == nil {
		trained = trainedIn(row)
	}
	s.ledger.Open(v, measured.withMeasured(v, trained))
	return known
}

// usageIn returns the usage in a row, for a run without a record of spending. Workers report again the tokens that they
// sampled, except workers of earlier versions of the program.
func (s *spendings) usageIn(row artifacts.Row) spending.Usage {
	if row.Trained != nil && s.status.Progress().ResumedFrom != nil {
		return row.Usage // the workers of the former run no longer report
	}
	if row.Trained != nil {
		return spending.Usage{TrainedTokens: row.Usage.TrainedTokens, BoughtTwiceTokens: row.Usage.BoughtTwiceTokens}
	}
	used := row.Usage
	used.TrainedTokens += used.BoughtTwiceTokens // they were counted apart
	for _, result := range s.journal.Evaluations() {
		used = used.Add(result.Usage)
	}
	return used
}

// trainedIn returns how many tokens were trained on in the steps that led to a row.
func trainedIn(row artifacts.Row) *int64 {
	if row.Trained != nil {
		return row.Trained
	}
	return &row.Usage.TrainedTokens
}

// spendingInterval is the interval between records of spending while no row is written.
const spendingInterval = 10 * time.Second

// record makes the spending durable. If the store does not accept the record, the former record stays until the next
// record replaces it.
func (s *spendings) record(ctx context.Context) {
	if err := s.ledger.Write(ctx); err != nil {
		s.logger.Warn("what was spent is not recorded", "err", err)
	}
}

// joinedPause is the pause after which a worker that has joined is recorded, so that one record covers all workers
// that join together.
const joinedPause = time.Second

// keepRecording records the spending regularly, and soon after a worker has joined. An attempt that begins after a
// learner and a worker died together needs these records.
func (s *spendings) keepRecording(ctx context.Context) {
	tick := time.NewTicker(spendingInterval)
	defer tick.Stop()
	var recorded spending.Usage
	for {
		joined := false
		select {
		case <-tick.C:
		case <-s.ledger.Joined():
			joined = wait.Sleep(ctx, joinedPause) == nil
		case <-ctx.Done():
			return
		}
		if used := s.ledger.Spent().Usage; (joined || used != recorded) && s.ledger.Write(ctx) == nil {
			recorded = used
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// errBudget ends a learner whose run has reached its budget. It stops at a saved state, like one that drains.
var errBudget = fmt.Errorf("%w because of the budget", errDrained)

// spent is a learner whose spending is recorded, and compared with the budget.
type spent struct{ *learner }

// reachedLimit returns which limit of the budget is reached; empty if the run may continue.
func (l spent) reachedLimit() string {
	used, _ := l.ledger.Usage()
	usd := 0.0
	if cost := costOf(l.file, used); cost != nil {
		usd = *cost
	}
	return l.file.Budget.Reached(used, usd)
}

// check returns an error once the run has reached its budget.
func (l spent) check() error {
	if limit := l.reachedLimit(); limit != "" {
		return fmt.Errorf("%w: %s", errBudget, limit)
	}
	return nil
}

// awaitEvaluations waits for the evaluations, or until the run has reached its budget.
func (l spent) awaitEvaluations(soft context.Context) error {
	ctx, stop := context.WithCancelCause(soft)
	defer stop(nil)
	if l.file.Budget != nil {
		go func() {
			for wait.Sleep(ctx, l.config.Timing.Tick) == nil {
				if err := l.check(); err != nil {
					stop(err)
					l.evaluator.Stop()
				}
			}
		}()
	}
	return l.evaluator.Wait(ctx)
}

// open notes that a version was loaded, and returns up to which step it is known what was spent. A run of which no
// attempt has recorded that has it in the newest row that can be read, and in the results of its evaluations.
func (l spent) open(v rl.Version) (known int64) {
	if l.ledger.Restored() {
		known = v.Step
	}
	for version := range l.journal.Chain(v) {
		if version.Row != nil {
			l.ledger.RestoreRow(l.usageIn(*version.Row), version.Row.TrainingSeconds)
			known = max(known, version.Step)
			break
		}
		if version.Step > 0 {
			l.config.Logger.Warn("row of a step is missing or damaged", "step", version.Step)
		}
	}
	var trained *int64
	if row, err := l.journal.Row(v); err == nil {
		trained = trainedIn(row)
	}
	l.ledger.Open(v, heldOut(l).withMeasured(v, trained))
	return known
}

// usageIn returns the usage that a row has, where no attempt has recorded what was spent. Workers report anew what they
// sampled, but for those of earlier versions of the program.
func (l spent) usageIn(row artifacts.Row) spending.Usage {
	if row.Trained != nil && l.status.Progress().ResumedFrom != nil {
		return row.Usage // the workers of the run that this run continues report no more
	}
	if row.Trained != nil {
		return spending.Usage{TrainedTokens: row.Usage.TrainedTokens, BoughtTwiceTokens: row.Usage.BoughtTwiceTokens}
	}
	used := row.Usage
	used.TrainedTokens += used.BoughtTwiceTokens // they were counted apart
	for _, result := range l.journal.Evaluations() {
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

// spendingInterval is how often what was spent is recorded while no row is.
const spendingInterval = 10 * time.Second

// record makes durable what was spent. A record that the store does not take stays as it was, and the next one replaces
// it.
func (l spent) record(ctx context.Context) {
	if err := l.ledger.Write(ctx); err != nil {
		l.config.Logger.Warn("what was spent is not recorded", "err", err)
	}
}

// joinedPause has the records of workers that join together written once.
const joinedPause = time.Second

// recordSpending records what was spent from time to time, and soon after a worker has joined, for an attempt that
// begins after a learner and a worker died together.
func recordSpending(ctx context.Context, l *learner) {
	tick := time.NewTicker(spendingInterval)
	defer tick.Stop()
	var recorded spending.Usage
	for {
		joined := false
		select {
		case <-tick.C:
		case <-l.ledger.Joined():
			joined = wait.Sleep(ctx, joinedPause) == nil
		case <-ctx.Done():
			return
		}
		if used, _ := l.ledger.Usage(); (joined || used != recorded) && l.ledger.Write(ctx) == nil {
			recorded = used
		}
	}
}

// costOf returns what a usage costs in dollars; nil where a price is not known.
func costOf(file contract.RunFile, used contract.Usage) *float64 {
	if file.Prices == nil {
		return nil
	}
	usd := file.Prices.USD(used)
	return &usd
}

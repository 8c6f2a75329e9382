// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// errBudget ends a learner whose run has reached its budget. It stops at a saved state, like one that drains.
var errBudget = fmt.Errorf("%w because of the budget", errDrained)

// budgeted is a learner whose usage is compared with the budget.
type budgeted struct{ *learner }

// used returns what the run has used at the version in the model, and the seconds of training.
func (l budgeted) used() (contract.Usage, float64) {
	used, seconds := l.book.Usage(l.loop.at.Version)
	used.BoughtTwiceTokens += l.table.Counters().BoughtTwiceTokens
	return used, seconds
}

// reachedLimit returns which limit of the budget is reached; empty if the run may continue.
func (l budgeted) reachedLimit() string {
	used, _ := l.used()
	usd := 0.0
	if cost := costOf(l.file, used); cost != nil {
		usd = *cost
	}
	return l.file.Budget.Reached(used, usd)
}

// costOf returns what a usage costs in dollars; nil where a price is not known.
func costOf(file contract.RunFile, used contract.Usage) *float64 {
	if file.Prices == nil {
		return nil
	}
	usd := file.Prices.USD(used)
	return &usd
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
)

// nearly is the used part of a budget from which an event warns, as an alert of the chart does.
const nearly = 0.8

// budgetEvents returns the events of the budgets that a status shows as nearly or wholly used for the first time.
func budgetEvents(before, after *v1alpha1.TinkerEndpoint, now time.Time) []record.Event {
	var all []record.Event
	for _, budget := range after.Spec.Budgets {
		was, is := usedPart(before, budget, now), usedPart(after, budget, now)
		tokens, usd := rules.UsageOf(after, budget, now)
		used := fmt.Sprintf("Of budget %q, %d tokens and %.2f USD are used in the present period: %.0f%%.", budget.Name,
			tokens, usd, 100*is)
		switch {
		case is >= 1 && was < 1:
			all = append(all, record.Warning(v1alpha1.ReasonBudgetReached, "Count", used+" Its runs stop at a saved state. "+
				"Raise the budget, or wait for its next period."))
		case is >= nearly && was < nearly:
			all = append(all, record.Warning(record.BudgetNearlyReached, "Count", used+" Its runs stop when all is used."))
		}
	}
	return all
}

// usedPart returns the used part of a budget, in dollars or in tokens, whichever part is larger.
func usedPart(of *v1alpha1.TinkerEndpoint, budget v1alpha1.EndpointBudget, now time.Time) float64 {
	tokens, usd := rules.UsageOf(of, budget, now)
	part := 0.0
	if limit := ptr.Deref(budget.USD, 0); limit > 0 {
		part = usd / limit
	}
	if limit := ptr.Deref(budget.Tokens, 0); limit > 0 {
		part = max(part, float64(tokens)/float64(limit))
	}
	return part
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// suspended reports whether a run must not run now: the spec suspends it, or its own budget or a budget of its
// TinkerEndpoint is reached.
func suspended(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) bool {
	return *run.Spec.Suspend || seen.Endpoint.BudgetReached != "" || desired.BudgetReached(run, run.Status, now) != ""
}

// suspended reports whether the run is suspended by its spec or, in the new status, by a budget.
func (v view) suspended() bool {
	return *v.run.Spec.Suspend || v.budgetReached() != ""
}

// budgetReached names the budget that is reached, and its repair; empty if none is reached.
func (v view) budgetReached() string {
	if own := desired.BudgetReached(v.run, *v.next, v.now); own != "" {
		return own + ". Raise the limit, and the run continues from its newest checkpoint."
	}
	return v.seen.Endpoint.BudgetReached
}

// untilLimit returns the time for which a run may still be in progress; maxRequeue if there is no such limit.
func untilLimit(run *v1alpha1.TrainingRun, now time.Time) time.Duration {
	if run.Spec.Budget == nil || run.Spec.Budget.ActiveSeconds == nil {
		return maxRequeue
	}
	return max(time.Second, time.Duration(*run.Spec.Budget.ActiveSeconds)*time.Second-desired.ActiveTime(run.Status, now))
}

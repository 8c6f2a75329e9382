// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// BudgetReached describes the limit of the budget that a run has reached, according to the status s; empty if no limit
// is reached.
func BudgetReached(run *v1alpha1.TrainingRun, s v1alpha1.TrainingRunStatus, now time.Time) string {
	if run.Spec.Budget == nil {
		return ""
	}
	var usd float64
	if s.Usage != nil {
		usd = ptr.Deref(s.Usage.EstimatedUSD, 0)
	}
	if reached := BudgetOf(run).Reached(status.UsageOf(s.Usage), usd); reached != "" {
		return reached
	}
	limit := run.Spec.Budget.ActiveSeconds
	if limit == nil || ActiveTime(s, now) < seconds64(*limit) {
		return ""
	}
	return fmt.Sprintf("budget.activeSeconds (%d) is reached: attempts were in progress for %d s", *limit,
		int64(ActiveTime(s, now).Seconds()))
}

// ActiveTime returns how long the attempts of a run were in progress in all.
func ActiveTime(s v1alpha1.TrainingRunStatus, now time.Time) time.Duration {
	total := seconds64(ptr.Deref(s.ActiveSeconds, 0))
	if len(s.Attempts) > 0 {
		total += AttemptLasted(s.Attempts[0], now)
	}
	return total
}

// AttemptLasted returns how long an attempt has been in progress; 0 once it has ended, since status.activeSeconds then
// counts it.
func AttemptLasted(a v1alpha1.Attempt, now time.Time) time.Duration {
	if a.StartTime == nil || a.CompletionTime != nil {
		return 0
	}
	return max(0, now.Sub(a.StartTime.Time))
}

func seconds64(n int64) time.Duration { return time.Duration(n) * time.Second }

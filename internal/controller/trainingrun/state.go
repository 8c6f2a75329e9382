// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// stateOf sums the conditions up for people.
func stateOf(v view) string {
	attempt := v.attempt()
	switch {
	case v.is(v1alpha1.ConditionComplete):
		return v1alpha1.StateSucceeded
	case v.is(v1alpha1.ConditionFailed):
		return v1alpha1.StateFailed
	case v.is(v1alpha1.ConditionSuspended):
		return v1alpha1.StateSuspended
	case v.suspended(), v.queued() && !idle(v.seen):
		return v1alpha1.StateDraining
	case v.queued():
		return v1alpha1.StateQueued
	case attempt == nil || v.plan.blocked != nil:
		return v1alpha1.StatePending
	case attempt.CompletionTime != nil || v.plan.start > 0:
		return startingState(v)
	default:
		return learnerState(v)
	}
}

// learnerState is the state of a run by the activity of its learner.
func learnerState(v view) string {
	reply := v.reply()
	if reply == nil && (v.seen.Heartbeat.Reply != nil || v.answeredBefore()) {
		// It does not answer at the moment, so that its last reply stands.
		return cmp.Or(v.run.Status.State, v1alpha1.StatePreparing)
	}
	if reply == nil {
		return startingState(v)
	}
	switch reply.Progress.Phase {
	case contract.PhaseOpening:
		return startingState(v)
	case contract.PhaseEvaluating:
		return v1alpha1.StateEvaluating
	case contract.PhaseDraining:
		return v1alpha1.StateDraining
	default:
		return v1alpha1.StateTraining
	}
}

// startingState distinguishes a first start, or one after a suspension, from one after a failure.
func startingState(v view) string {
	for _, a := range v.next.Attempts {
		if a.CompletionTime == nil || a.Cause == string(contract.CauseRefused) {
			continue
		}
		if a.Cause != string(contract.CauseDrained) {
			return v1alpha1.StateRecovering
		}
		break
	}
	return v1alpha1.StatePreparing
}

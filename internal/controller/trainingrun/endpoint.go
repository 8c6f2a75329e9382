// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// acceptedCondition also reports settings of the spec that the endpoint does not support.
func acceptedCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionAccepted
	if b := v.plan.blocked; b != nil && b.Condition == kind {
		return status.False(kind, b.Reason, b.Message)
	}
	if p := v.unusable(kind); p != nil {
		return *p
	}
	if v.unsupported() {
		return v.as(kind, v1alpha1.ConditionFailed, status.False)
	}
	message := "The spec makes a run." + earlierRun(v.next.EarlierRun)
	switch found := v.next.Capabilities; {
	case found != nil && slices.Contains(found.Unsupported, contract.CapabilitySeed):
		message += " The endpoint refuses seeds of 63 bits: samples are drawn with seeds of 31 bits."
	case status.Lacks(found, contract.CapabilitySeed):
		message += " The endpoint ignores the seeds of samples, so that another run of the spec has other weights."
	}
	if v.run.Spec.Mode != v1alpha1.ModeEvaluate && status.IsUndecided(v.next.Capabilities, contract.CapabilityGradientSum) {
		message += " It could not be measured whether the endpoint sums gradients over tokens and sequences; if it " +
			"averages them, " +
			"a learning rate has a smaller effect than the spec says."
	}
	return status.True(kind, v1alpha1.ReasonAccepted, message)
}

// unsupported says that the run failed because the endpoint does not do what the spec asks for.
func (v view) unsupported() bool {
	attempt := v.attempt()
	if !v.is(v1alpha1.ConditionFailed) || attempt == nil || attempt.Cause != string(contract.CauseConfigRejected) {
		return false
	}
	reason := meta.FindStatusCondition(v.next.Conditions, v1alpha1.ConditionFailed).Reason
	return reason == v1alpha1.ReasonUnsupportedByEndpoint || reason == v1alpha1.ReasonOptimizerNotRestored
}

// losesOptimizer says that the run has a checkpoint and waits for an endpoint that restores its optimizer.
func losesOptimizer(v view) bool {
	a := v.awaiting()
	return a != nil && a.Reason == v1alpha1.ReasonOptimizerNotRestored && v.next.LatestCheckpoint != nil
}

// isRestored reports whether the run waits because its status is the status of another run.
func (v view) isRestored() bool {
	return v.plan.blocked != nil && v.plan.blocked.Reason == v1alpha1.ReasonStatusRestored
}

func resumableCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionResumable
	failed := meta.FindStatusCondition(v.next.Conditions, v1alpha1.ConditionFailed)
	attempt := v.attempt()
	switch {
	case failed.Reason == v1alpha1.ReasonNoUsableCheckpoint,
		failed.Reason == v1alpha1.ReasonOptimizerNotRestored && v.next.LatestCheckpoint != nil:
		return status.False(kind, failed.Reason, failed.Message)
	case losesOptimizer(v):
		return status.False(kind, v1alpha1.ReasonOptimizerNotRestored, v.awaiting().Message)
	case v.isRestored():
		return status.False(kind, v.plan.blocked.Reason, v.plan.blocked.Message)
	case v.run.Spec.Mode == v1alpha1.ModeEvaluate:
		return status.False(kind, v1alpha1.ReasonNoCheckpoint,
			"The run only evaluates and saves no checkpoint: a new attempt evaluates again.")
	case v.next.LatestCheckpoint == nil:
		return status.False(kind, v1alpha1.ReasonNoCheckpoint, "No checkpoint has been saved yet.")
	case status.Lacks(v.next.Capabilities, contract.CapabilityOptimizerRestore):
		return status.True(kind, v1alpha1.ReasonOptimizerNotRestored,
			"The run can resume from status.latestCheckpoint, but the endpoint does not "+
				"restore the optimizer: Adam starts from zero after each resume, as failurePolicy.requireOptimizerState allows.")
	case attempt != nil && ptr.Deref(attempt.ColdOptimizer, false):
		return status.True(kind, v1alpha1.ReasonOptimizerNotRestored,
			fmt.Sprintf("The run can resume from status.latestCheckpoint, but attempt %d "+
				"resumed from a state without its optimizer: Adam started from zero, as "+
				"failurePolicy.requireOptimizerState allows.",
				attempt.Number))
	case attempt != nil && ptr.Deref(attempt.LostVersions, 0) > 0:
		return status.True(kind, v1alpha1.ReasonVersionsLost,
			fmt.Sprintf("The run can resume from status.latestCheckpoint, but %d versions within "+
				"algorithm.lag had expired when attempt %d began, and newer ones were sampled instead: another run of the spec "+
				"has other weights.",
				*attempt.LostVersions, attempt.Number))
	case status.Lacks(v.next.Capabilities, contract.CapabilityListCheckpoints) && v.run.Spec.Artifacts != nil:
		return status.True(kind, v1alpha1.ReasonCheckpointSaved,
			"The run can resume: the endpoint does not list checkpoints, and the rows of the "+
				"artifact store name them.")
	case status.Lacks(v.next.Capabilities, contract.CapabilityListCheckpoints):
		return status.True(kind, v1alpha1.ReasonCheckpointSaved,
			"The run can resume from status.latestCheckpoint alone, because the endpoint does not list "+
				"checkpoints: steps after it are done again. With spec.artifacts a run also finds newer ones.")
	default:
		return status.True(kind, v1alpha1.ReasonCheckpointSaved, "The run can resume from status.latestCheckpoint.")
	}
}

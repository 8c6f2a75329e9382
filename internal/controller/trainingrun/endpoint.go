// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// acceptedCondition also reports settings of the spec that the endpoint does not support, and environments that cannot
// be used.
func acceptedCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionAccepted
	if b := v.plan.blocked; b != nil {
		return not(kind, *b)
	}
	if p := v.unusable(); p != nil {
		return *p
	}
	if v.unsupported() {
		return v.as(kind, v1alpha1.ConditionFailed, metav1.ConditionFalse)
	}
	if c := v.unusableEnvironments(); c != nil {
		return *c
	}
	message := "The spec makes a run." + earlierRun(v.next.EarlierRun)
	if untested := desired.Untested(v.run.Spec.Model); untested != "" {
		message += " " + untested
	}
	switch found := v.next.Capabilities; {
	case found != nil && slices.Contains(found.Unsupported, contract.CapabilitySeed):
		message += " The endpoint refuses seeds of 63 bits: samples are drawn with seeds of 31 bits."
	case status.Lacks(found, contract.CapabilitySeed):
		message += " The endpoint ignores the seeds of samples, so that another run of the spec has other weights."
	}
	if v.run.Spec.Mode != v1alpha1.ModeEvaluate && status.IsUndecided(v.next.Capabilities,
		contract.CapabilityGradientSum) {
		message += " It could not be measured whether the endpoint sums gradients over tokens and sequences; if it " +
			"averages them, " +
			"a learning rate has a smaller effect than the spec says."
	}
	return status.True(kind, v1alpha1.ReasonAccepted, message)
}

// unsupported reports whether the run failed because the endpoint lacks a feature that the spec needs.
func (v view) unsupported() bool {
	attempt := v.attempt()
	if !v.is(v1alpha1.ConditionFailed) || attempt == nil || attempt.Cause != string(contract.CauseConfigRejected) {
		return false
	}
	code := v.code(v1alpha1.ConditionFailed)
	return code == problem.UnsupportedByEndpoint || code == problem.OptimizerNotRestored
}

// continuation says from which state a new attempt would continue. While a learner runs, it saves further states, so
// that the sentence refers to the status instead of a step.
func (v view) continuation() string {
	const resumes = "A new attempt continues from status.latestCheckpoint"
	attempt, newest := v.attempt(), status.Latest(v.next)
	switch {
	case v.run.Spec.Mode == v1alpha1.ModeEvaluate:
		return "A new attempt evaluates again."
	case newest == nil:
		return "No checkpoint has been saved yet."
	case status.Lacks(v.next.Capabilities, contract.CapabilityOptimizerRestore):
		return resumes + ". The endpoint does not restore the optimizer: Adam starts from zero after each resume, as " +
			"failurePolicy.requireOptimizerState allows."
	case attempt != nil && ptr.Deref(attempt.ColdOptimizer, false):
		return resumes + fmt.Sprintf(". Attempt %d resumed from a state without its optimizer: Adam started from zero, as "+
			"failurePolicy.requireOptimizerState allows.", attempt.Number)
	case attempt != nil && ptr.Deref(attempt.LostVersions, 0) > 0:
		return resumes + fmt.Sprintf(". %d versions within algorithm.lag had expired when attempt %d began, and newer ones "+
			"were sampled instead: another run of the spec has other weights.", *attempt.LostVersions, attempt.Number)
	case status.Lacks(v.next.Capabilities, contract.CapabilityListCheckpoints) && v.run.Spec.Artifacts == nil:
		return resumes + ". The endpoint does not list checkpoints, so that steps after it are done again. With " +
			"spec.artifacts a run also finds newer ones."
	case attempt != nil && attempt.CompletionTime != nil:
		return fmt.Sprintf("A new attempt continues from step %d or a newer state.", newest.Step)
	default:
		return resumes + " or a newer state."
	}
}

// continuationOfRetry says from which step a failed run would continue, as a further sentence; empty for a run that
// cannot.
func (v view) continuationOfRetry() string {
	failed, newest := meta.FindStatusCondition(v.next.Conditions, v1alpha1.ConditionFailed), status.Latest(v.next)
	if !v.is(v1alpha1.ConditionFailed) || failed.Reason == v1alpha1.ReasonNoUsableCheckpoint || newest == nil {
		return ""
	}
	return fmt.Sprintf(" A retry continues from step %d.", newest.Step)
}

// atTinkerEndpoint adapts a learner's problem to a run that names a TinkerEndpoint: the endpoint is missing or no
// longer allows the run, or the broker refuses the run's token.
func (v view) atTinkerEndpoint(found problem.Problem) problem.Problem {
	named := v.run.Spec.Tinker.EndpointRef
	switch known := v.seen.Endpoint.Problem; {
	case named == nil || !found.Row().Endpoint:
	case known != nil:
		return *known
	case found.Code == problem.KeyRefused:
		return keyRefused(v.run)
	}
	return found
}

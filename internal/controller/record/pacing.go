// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Minimum times between two writes of one status, if the newer write can wait. Changes of the state that people see are
// written sooner than other changes, but not at once: an endpoint that answers 429 now and then would cause many
// writes.
const (
	writeEvery = 5 * time.Second
	writeSoon  = 2 * time.Second
)

// Due reports whether a status is to be written now, and if not, how long the write can wait; 0 if nothing has changed.
func Due(before, after *v1alpha1.TrainingRunStatus, wrote, now time.Time, rule Pace) (bool, time.Duration) {
	if equal(before, after) {
		return false, 0
	}
	if isUrgent(before, after) {
		return true, 0
	}
	every := writeEvery
	if onlyFigures(rule.everySteps, before, after) {
		every = rule.figures
	} else if before.State != after.State || differs(before.Conditions, after.Conditions,
		v1alpha1.ConditionPodsReady) {
		every = writeSoon
	}
	wait := wrote.Add(every).Sub(now)
	return wait <= 0, max(wait, 0)
}

// equal compares statuses without the ratio that changes by the mere passing of time.
func equal(before, after *v1alpha1.TrainingRunStatus) bool {
	same := *after
	same.EffectiveTrainingRatio = before.EffectiveTrainingRatio
	return equality.Semantic.DeepEqual(before, &same)
}

// isUrgent reports whether a change must be known before anything follows from it, or a person waits for it.
func isUrgent(before, after *v1alpha1.TrainingRunStatus) bool {
	if ptr.Deref(before.ObservedGeneration, 0) != ptr.Deref(after.ObservedGeneration, 0) ||
		len(before.Attempts) != len(after.Attempts) {
		return true
	}
	for i := range after.Attempts {
		was, is := before.Attempts[i], after.Attempts[i]
		if was.Number != is.Number || was.Cause != is.Cause || (was.CompletionTime == nil) != (is.CompletionTime == nil) {
			return true
		}
	}
	for _, kind := range []string{
		v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended,
		v1alpha1.ConditionAccepted,
	} {
		if differs(before.Conditions, after.Conditions, kind) {
			return true
		}
	}
	return false
}

func differs(before, after []metav1.Condition, kind string) bool {
	_, _, changed := Transition(before, after, kind)
	return changed
}

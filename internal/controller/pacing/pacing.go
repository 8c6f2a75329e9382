// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package pacing decides when the status of a run is written: what follows from it or is waited for at once, the rest
// less often.
package pacing

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
)

// The least times between two writes of one status, where the newer could wait. A step or a metric more is
// written every 5 s, which looks alive and costs the API server little; what changes the state that people see
// comes a little sooner, but an endpoint that answers 429 now and then makes no storm of writes.
const (
	writeEvery = 5 * time.Second
	writeSoon  = 2 * time.Second
)

// Due says whether a status is to be written now, and if not, whether it is to be written later.
func Due(before, after *v1alpha1.TrainingRunStatus, wrote, now time.Time) (bool, time.Duration) {
	same := after.DeepCopy()
	// This ratio changes by the mere passing of time.
	same.EffectiveTrainingRatio = before.EffectiveTrainingRatio
	if equality.Semantic.DeepEqual(before, same) {
		return false, 0
	}
	if urgent(before, after) {
		return true, 0
	}
	every := writeEvery
	if before.State != after.State || differs(before.Conditions, after.Conditions, v1alpha1.ConditionLearnerRunning) {
		every = writeSoon
	}
	wait := wrote.Add(every).Sub(now)
	return wait <= 0, max(wait, 0)
}

// urgent says that something must be known before anything follows from it, or that a person waits for it.
func urgent(before, after *v1alpha1.TrainingRunStatus) bool {
	if ptr.Deref(before.ObservedGeneration, 0) != ptr.Deref(after.ObservedGeneration, 0) || len(before.Attempts) != len(after.Attempts) {
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
		v1alpha1.ConditionAccepted, v1alpha1.ConditionEnvironmentsReady,
	} {
		if differs(before.Conditions, after.Conditions, kind) {
			return true
		}
	}
	return false
}

func differs(before, after []metav1.Condition, kind string) bool {
	_, _, changed := record.Transition(before, after, kind)
	return changed
}

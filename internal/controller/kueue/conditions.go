// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the greatest length of a condition's message.
const maxMessage = 32 << 10

// preempted is the reason of an eviction after which Kueue queues the Workload again at once.
const preempted = "Preempted"

// nodeFailures is another such reason.
const nodeFailures = "NodeFailures"

// Released returns the status of an evicted Workload whose pods have ended: without the reservation, and queued again
// unless Kueue is to decide that.
func (w *Workload) Released(now time.Time) Status {
	next := w.Status
	next.Conditions = append([]metav1.Condition(nil), next.Conditions...)
	evicted := meta.FindStatusCondition(next.Conditions, conditionEvicted)
	requeued := metav1.ConditionFalse
	if evicted.Reason == preempted || evicted.Reason == nodeFailures {
		requeued = metav1.ConditionTrue
	}
	next.Admission = nil
	w.set(&next, now, conditionRequeued, requeued, evicted.Reason, evicted.Message)
	w.set(&next, now, conditionQuotaReserved, metav1.ConditionFalse, "Pending", evicted.Message)
	w.set(&next, now, conditionAdmitted, metav1.ConditionFalse, "NoReservation", "The workload has no reservation")
	return next
}

// Finished returns the status of a Workload whose run is over.
func (w *Workload) Finished(now time.Time, succeeded bool, message string) Status {
	next := w.Status
	next.Conditions = append([]metav1.Condition(nil), next.Conditions...)
	reason := "Failed"
	if succeeded {
		reason = "Succeeded"
	}
	w.set(&next, now, conditionFinished, metav1.ConditionTrue, reason, message)
	return next
}

// Ready returns the status of an admitted Workload whose pods are ready, or not, and whether that is a change. Kueue
// evicts a Workload if its pods are not ready in time and its waitForPodsReady says so.
func (w *Workload) Ready(now time.Time, ready bool) (Status, bool) {
	next := w.Status
	next.Conditions = append([]metav1.Condition(nil), next.Conditions...)
	before := meta.FindStatusCondition(next.Conditions, conditionPodsReady)
	switch recovering := before != nil && (before.Status == metav1.ConditionTrue || before.Reason == waitForRecovery ||
		before.Reason == recovered); {
	case ready && (before == nil || before.Reason == waitForStart):
		return next, w.set(&next, now, conditionPodsReady, metav1.ConditionTrue, started, "All pods are ready")
	case ready && before.Status != metav1.ConditionTrue:
		return next, w.set(&next, now, conditionPodsReady, metav1.ConditionTrue, recovered, "All pods are ready again")
	case !ready && recovering:
		return next, w.set(&next, now, conditionPodsReady, metav1.ConditionFalse, waitForRecovery,
			"A pod has failed or is being replaced")
	case !ready:
		return next, w.set(&next, now, conditionPodsReady, metav1.ConditionFalse, waitForStart, "Not all pods are ready")
	}
	return next, false
}

// Reasons of PodsReady.
const (
	started         = "Started"
	recovered       = "Recovered"
	waitForStart    = "WaitForStart"
	waitForRecovery = "WaitForRecovery"
)

func (w *Workload) set(in *Status, now time.Time, kind string, is metav1.ConditionStatus, reason, message string) bool {
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	return meta.SetStatusCondition(&in.Conditions, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
		ObservedGeneration: w.Generation,
	})
}

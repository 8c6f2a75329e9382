// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// awaitsReply says that the newest attempt's learner runs and has no fresh reply, but has not been silent for
// long enough to count as unreachable: this manager has just started, or a heartbeat was lost.
func (v view) awaitsReply() bool {
	if status.AttemptEnded(v.run) || v.plan.start > 0 || v.plan.ending != nil || v.seen.Heartbeat.Fresh(v.now) {
		return false
	}
	l := v.seen.Learners[status.NewestAttempt(v.run)]
	_, running := learnerRunning(l.Pod)
	return running && !v.now.After(silentFrom(l, v.seen, v.now))
}

// answeredBefore says that this attempt's learner was observed to run before, perhaps by another manager: as long as
// the next reply is awaited, the status stands as it is.
func (v view) answeredBefore() bool {
	c := meta.FindStatusCondition(v.run.Status.Conditions, v1alpha1.ConditionLearnerRunning)
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonUnreachable)
}

// stands says that the conditions which follow from heartbeats stay as they were.
func (v view) stands(kind string) bool {
	return v.awaitsReply() && v.answeredBefore() && meta.FindStatusCondition(v.run.Status.Conditions, kind) != nil
}

// asBefore gives a condition as the status has it.
func (v view) asBefore(kind string) status.Condition {
	return *meta.FindStatusCondition(v.run.Status.Conditions, kind)
}

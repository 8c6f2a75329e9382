// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// awaitsReply reports whether the newest attempt's learner runs and has no fresh reply, but has not been silent for
// long enough to count as unreachable: this manager has just started, or a heartbeat was lost.
func (v view) awaitsReply() bool {
	if status.AttemptEnded(v.run) || v.plan.start > 0 || v.plan.ending != nil || v.seen.Heartbeat.Fresh(v.now) {
		return false
	}
	l := v.seen.Learners[status.NewestAttempt(v.run)]
	_, running := learnerRunning(l.Pod)
	return running && !v.now.After(silentFrom(l, v.seen, v.now))
}

// answeredBefore reports whether this attempt's learner was observed to run before, perhaps by another manager: as long
// as the next reply is awaited, the status stands as it is.
func (v view) answeredBefore() bool {
	attempts := v.run.Status.Attempts
	return len(attempts) > 0 && attempts[0].AnswerTime != nil || v.unreachableBefore()
}

// unreachableBefore reports whether the status says that the learner does not answer.
func (v view) unreachableBefore() bool {
	c := meta.FindStatusCondition(v.run.Status.Conditions, v1alpha1.ConditionPodsReady)
	return c != nil && c.Reason == v1alpha1.ReasonUnreachable
}

// setAnswerTime records since when the newest attempt's learner answers.
func setAnswerTime(v view) {
	newest := v.attempt()
	if newest == nil || v.reply() == nil || newest.AnswerTime != nil && !v.unreachableBefore() {
		return
	}
	newest.AnswerTime = new(metav1.NewTime(v.now))
}

// stands reports whether a condition that follows from heartbeats stays as it was.
func (v view) stands(kind string) bool {
	return v.awaitsReply() && v.answeredBefore() && meta.FindStatusCondition(v.run.Status.Conditions, kind) != nil
}

// asBefore returns a condition as the status has it.
func (v view) asBefore(kind string) status.Condition {
	return *status.Find(v.run.Status.Conditions, v.run.Status.Codes, kind)
}

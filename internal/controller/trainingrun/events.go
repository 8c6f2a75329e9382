// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/heartbeat"
)

// Reasons of events that are no conditions' reasons.
const (
	eventAttemptStarted  = "AttemptStarted"
	eventAttemptEnded    = "AttemptEnded"
	eventCheckpointSaved = "CheckpointSaved"
	eventResumed         = "Resumed"
	eventCreateRefused   = "CreateRefused"
)

// happening is an event to be told of, once the write that made it true is done.
type happening struct {
	kind   string
	reason string
	action string
	note   string
}

func normal(reason, action, note string) happening {
	return happening{corev1.EventTypeNormal, reason, action, note}
}

func warning(reason, action, note string) happening {
	return happening{corev1.EventTypeWarning, reason, action, note}
}

// happenings are what is new in a status.
func happenings(before, after *v1alpha1.TrainingRunStatus) []happening {
	all := attemptEvents(before, after)
	if c := after.LatestCheckpoint; c != nil && (before.LatestCheckpoint == nil || before.LatestCheckpoint.State != c.State) {
		all = append(all, normal(eventCheckpointSaved, "Checkpoint", fmt.Sprintf("Step %d is saved: %s", c.Step, c.State)))
	}
	return append(all, conditionEvents(before, after)...)
}

func attemptEvents(before, after *v1alpha1.TrainingRunStatus) []happening {
	known := map[int32]v1alpha1.Attempt{}
	for _, a := range before.Attempts {
		known[a.Number] = a
	}
	var all []happening
	// The newest is first in the list, and told of last.
	for i := len(after.Attempts) - 1; i >= 0; i-- {
		a := after.Attempts[i]
		was, there := known[a.Number]
		if !there && a.CompletionTime == nil && (i == 0) {
			all = append(all, normal(eventAttemptStarted, "Start", fmt.Sprintf("Attempt %d starts.", a.Number)))
		}
		if there && was.CompletionTime == nil && a.CompletionTime != nil {
			all = append(all, attemptEnded(a))
		}
	}
	return all
}

func attemptEnded(a v1alpha1.Attempt) happening {
	note := fmt.Sprintf("Attempt %d ended (%s): %s", a.Number, a.Cause, a.Message)
	if a.Cause == string(heartbeat.Completed) || a.Cause == string(heartbeat.Drained) {
		return normal(eventAttemptEnded, "End", note)
	}
	return warning(eventAttemptEnded, "End", note)
}

// conditionEvents are the transitions that people want to be told of.
func conditionEvents(before, after *v1alpha1.TrainingRunStatus) []happening {
	var all []happening
	for _, kind := range []string{
		v1alpha1.ConditionSuspended, v1alpha1.ConditionStalled, v1alpha1.ConditionProgressing,
		v1alpha1.ConditionComplete, v1alpha1.ConditionFailed,
	} {
		was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
		if kind == v1alpha1.ConditionStalled && meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed) {
			continue // The failure itself is told of.
		}
		if is == nil || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
			continue
		}
		if h := transition(kind, was != nil && was.Reason == v1alpha1.ReasonSuspended, is.Status == "True", is.Reason); h != nil {
			h.note = is.Message
			all = append(all, *h)
		}
	}
	return all
}

func transition(kind string, wasSuspended, holds bool, reason string) *happening {
	var h happening
	switch {
	case kind == v1alpha1.ConditionSuspended && reason == v1alpha1.ReasonNotSuspended && wasSuspended:
		h = normal(eventResumed, "Resume", "")
	case kind == v1alpha1.ConditionSuspended && (holds || reason == v1alpha1.ReasonDraining):
		h = normal(reason, "Suspend", "")
	case kind == v1alpha1.ConditionComplete && holds:
		h = normal(reason, "Complete", "")
	case kind == v1alpha1.ConditionFailed && holds:
		h = warning(reason, "Fail", "")
	case kind == v1alpha1.ConditionStalled && holds:
		h = warning(reason, "Wait", "")
	case kind == v1alpha1.ConditionProgressing && !holds && isUpstream(reason):
		h = warning(reason, "Wait", "")
	default:
		return nil
	}
	return &h
}

func isUpstream(reason string) bool {
	for _, up := range upstreams {
		if up.reason == reason {
			return true
		}
	}
	return false
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
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

// happenings are what is new in the status of a run. every is checkpoints.everySteps.
func happenings(every int64, before, after *v1alpha1.TrainingRunStatus) []happening {
	all := attemptEvents(before, after)
	if c := lastingCheckpoint(every, before, after); c != nil {
		all = append(all, normal(eventCheckpointSaved, "Checkpoint", fmt.Sprintf("Step %d is saved: %s", c.Step, c.State)))
	}
	return append(all, conditionEvents(before, after)...)
}

// lastingCheckpoint is a new one that is kept; nil without. Rolling states are no event each: there may be one
// every second. Where the status has moved past the lasting one, the newest stands for it.
func lastingCheckpoint(every int64, before, after *v1alpha1.TrainingRunStatus) *v1alpha1.Checkpoint {
	if every < 1 || after.LatestCheckpoint == nil || latestStep(after)/every <= latestStep(before)/every {
		return nil
	}
	step := latestStep(after) / every * every
	for i := range after.Checkpoints {
		if after.Checkpoints[i].Step == step {
			return &after.Checkpoints[i]
		}
	}
	return after.LatestCheckpoint
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
	note := fmt.Sprintf("Attempt %d ended: %s.", a.Number, a.Cause)
	if a.Message != "" {
		note += " " + a.Message
	}
	if a.Cause == string(contract.CauseCompleted) || a.Cause == string(contract.CauseDrained) {
		return normal(eventAttemptEnded, "End", note)
	}
	return warning(eventAttemptEnded, "End", note)
}

// conditionEvents are the transitions that people want to be told of.
func conditionEvents(before, after *v1alpha1.TrainingRunStatus) []happening {
	failed := meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed)
	var all []happening
	for _, told := range []struct {
		kind string
		tell func(was, is *metav1.Condition) (happening, bool)
	}{
		{v1alpha1.ConditionSuspended, suspendEvent},
		{v1alpha1.ConditionStalled, func(_, is *metav1.Condition) (happening, bool) {
			// Of a failure, the failure itself is told.
			return warning(is.Reason, "Wait", is.Message), is.Status == metav1.ConditionTrue && !failed
		}},
		{v1alpha1.ConditionProgressing, func(_, is *metav1.Condition) (happening, bool) {
			return warning(is.Reason, "Wait", is.Message), is.Status == metav1.ConditionFalse && isUpstream(is.Reason)
		}},
		{v1alpha1.ConditionResumable, func(_, is *metav1.Condition) (happening, bool) {
			return warning(is.Reason, "Resume", is.Message), is.Reason == v1alpha1.ReasonOptimizerNotRestored && !failed
		}},
		{v1alpha1.ConditionComplete, func(_, is *metav1.Condition) (happening, bool) {
			return normal(is.Reason, "Complete", is.Message+lastPath(after)), is.Status == metav1.ConditionTrue
		}},
		{v1alpha1.ConditionFailed, func(_, is *metav1.Condition) (happening, bool) {
			return warning(is.Reason, "Fail", is.Message), is.Status == metav1.ConditionTrue
		}},
	} {
		was, is := meta.FindStatusCondition(before.Conditions, told.kind), meta.FindStatusCondition(after.Conditions, told.kind)
		if is == nil || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
			continue
		}
		if h, ok := told.tell(was, is); ok {
			all = append(all, h)
		}
	}
	return all
}

func suspendEvent(was, is *metav1.Condition) (happening, bool) {
	if is.Reason == v1alpha1.ReasonNotSuspended {
		return normal(eventResumed, "Resume", "The run goes on."), was != nil && was.Reason == v1alpha1.ReasonSuspended
	}
	return normal(is.Reason, "Suspend", is.Message), is.Status != metav1.ConditionFalse
}

// lastPath names the newest checkpoint, at the end of a sentence.
func lastPath(s *v1alpha1.TrainingRunStatus) string {
	if s.LatestCheckpoint == nil {
		return ""
	}
	return " Its last checkpoint: " + s.LatestCheckpoint.State
}

func isUpstream(reason string) bool {
	for _, up := range upstreams {
		if up.reason == reason {
			return true
		}
	}
	return false
}

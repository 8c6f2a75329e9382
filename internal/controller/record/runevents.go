// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Reasons of events that are not reasons of a condition.
const (
	eventAttemptStarted  = "AttemptStarted"
	eventAttemptEnded    = "AttemptEnded"
	eventCheckpointSaved = "CheckpointSaved"
	eventResumed         = "Resumed"
	eventRunContinued    = "RunContinued"
	eventEarlierRun      = "EarlierRunFound"
	eventOutdated        = "EnvironmentOutdated"
)

// isEvent reports whether there is an event for a problem that Progressing shows: a person has to act, or the problem
// is at the endpoint.
func isEvent(code problem.Code) bool {
	row := problem.Lookup(code)
	return problem.IsKnown(code) && (row.NeedsAction || row.Endpoint)
}

// EventsOfRun returns the events that follow from a change of a run's status. every is checkpoints.everySteps.
func EventsOfRun(every int64, before, after *v1alpha1.TrainingRunStatus) []Event {
	all := attemptEvents(before, after)
	if c := LastingCheckpoint(every, before, after); c != nil {
		all = append(all, Normal(eventCheckpointSaved, "Checkpoint", fmt.Sprintf("Step %d is saved: %s", c.Step, c.State)))
	}
	return slices.Concat(all, originEvents(before, after), optimizerEvents(before, after),
		conditionEvents(before, after), diagnosisEvents(before, after), outdatedEvents(before, after))
}

// outdatedEvents returns an event for each environment whose RewardEnvironment has changed.
func outdatedEvents(before, after *v1alpha1.TrainingRunStatus) []Event {
	var all []Event
	for _, e := range after.Environments {
		known := slices.ContainsFunc(before.Environments, func(b v1alpha1.EnvironmentStatus) bool {
			return b.Name == e.Name && ptr.Deref(b.Outdated, false)
		})
		if ptr.Deref(e.Outdated, false) && !known {
			all = append(all, Warning(eventOutdated, "Pin", fmt.Sprintf("The RewardEnvironment of environment %q has another "+
				"spec than this run began with. The run keeps its own: a fork has the new one (kubectl tinker fork).", e.Name)))
		}
	}
	return all
}

// diagnosisEvents returns an event for each cause that is new.
func diagnosisEvents(before, after *v1alpha1.TrainingRunStatus) []Event {
	var all []Event
	for _, d := range after.Diagnoses {
		known := slices.ContainsFunc(before.Diagnoses, func(b v1alpha1.Diagnosis) bool { return b.Cause == d.Cause })
		if !known {
			all = append(all, Warning(d.Cause, "Learn", d.Message))
		}
	}
	return all
}

// LastingCheckpoint returns a new checkpoint that is kept; nil if there is none. every is checkpoints.everySteps.
// Rolling states have no events, since there may be one every second. If the list no longer has the new checkpoint that
// is kept, the newest checkpoint stands for it.
func LastingCheckpoint(every int64, before, after *v1alpha1.TrainingRunStatus) *v1alpha1.Checkpoint {
	if every < 1 || after.LatestCheckpoint == "" || status.LatestStep(after)/every <= status.LatestStep(before)/every {
		return nil
	}
	step := status.LatestStep(after) / every * every
	for i := range after.Checkpoints {
		if after.Checkpoints[i].Step == step {
			return &after.Checkpoints[i]
		}
	}
	return status.Latest(after)
}

func attemptEvents(before, after *v1alpha1.TrainingRunStatus) []Event {
	known := map[int32]v1alpha1.Attempt{}
	for _, a := range before.Attempts {
		known[a.Number] = a
	}
	var all []Event
	// The newest attempt is first in the list, and its event comes last.
	for i := len(after.Attempts) - 1; i >= 0; i-- {
		a := after.Attempts[i]
		was, found := known[a.Number]
		if repeats(after.Attempts[i:]) {
			continue
		}
		if !found && a.CompletionTime == nil && i == 0 {
			all = append(all, Normal(eventAttemptStarted, "Start", fmt.Sprintf("Attempt %d starts.", a.Number)))
		}
		if found && was.CompletionTime == nil && a.CompletionTime != nil {
			all = append(all, attemptEnded(a))
		}
	}
	return all
}

// repeats reports whether the first of the attempts only finds out whether the repair was made that the attempt before
// it awaits.
func repeats(attempts []v1alpha1.Attempt) bool {
	if attempts[0].CompletionTime != nil {
		return attempts[0].Count > 1
	}
	return len(attempts) > 1 && attempt.AwaitsRepair(attempts[1])
}

func attemptEnded(a v1alpha1.Attempt) Event {
	note := fmt.Sprintf("Attempt %d ended: %s.", a.Number, a.Cause)
	if a.Message != "" {
		note += " " + a.Message
	}
	if a.Cause == string(contract.CauseCompleted) || a.Cause == string(contract.CauseDrained) {
		return Normal(eventAttemptEnded, "End", note)
	}
	return Warning(eventAttemptEnded, "End", note)
}

// conditionEvents returns events for the transitions that are of interest to users.
func conditionEvents(before, after *v1alpha1.TrainingRunStatus) []Event {
	failed := meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed)
	var all []Event
	for _, transition := range []struct {
		kind  string
		event func(was, is *metav1.Condition) (Event, bool)
	}{
		{v1alpha1.ConditionSuspended, suspendEvent},
		{v1alpha1.ConditionStalled, func(_, is *metav1.Condition) (Event, bool) {
			// A failure has an event of its own.
			return Warning(is.Reason, "Wait", is.Message), is.Status == metav1.ConditionTrue && !failed
		}},
		{v1alpha1.ConditionProgressing, func(_, is *metav1.Condition) (Event, bool) {
			return Warning(is.Reason, "Wait", is.Message), is.Status == metav1.ConditionFalse &&
				isEvent(status.CodeOf(after.Codes, is.Type))
		}},
		{v1alpha1.ConditionPodsReady, func(_, is *metav1.Condition) (Event, bool) {
			code := status.CodeOf(after.Codes, is.Type)
			return Warning(is.Reason, "Create", is.Message), answers(after) &&
				(code == problem.CreateRefused || code == problem.SpecRefused)
		}},
		{v1alpha1.ConditionPodsReady, func(_, is *metav1.Condition) (Event, bool) {
			code := status.CodeOf(after.Codes, is.Type)
			return Warning(is.Reason, "Start", is.Message), code == problem.WorkersCrashed ||
				code == problem.WorkersOutOfMemory
		}},
		{v1alpha1.ConditionRecording, func(_, is *metav1.Condition) (Event, bool) {
			return Warning(is.Reason, "Track", is.Message), is.Status == metav1.ConditionFalse
		}},
		{v1alpha1.ConditionComplete, func(_, is *metav1.Condition) (Event, bool) {
			return Normal(is.Reason, "Complete", is.Message+lastPath(after)), is.Status == metav1.ConditionTrue
		}},
		{v1alpha1.ConditionFailed, func(_, is *metav1.Condition) (Event, bool) {
			return Warning(is.Reason, "Fail", is.Message), is.Status == metav1.ConditionTrue
		}},
	} {
		was, is, changed := Transition(before.Conditions, after.Conditions, transition.kind)
		changed = changed || status.CodeOf(before.Codes, transition.kind) != status.CodeOf(after.Codes, transition.kind)
		if is == nil || !changed && !newEvidence(was, is, status.CodeOf(after.Codes, transition.kind)) {
			continue
		}
		if event, ok := transition.event(was, is); ok {
			all = append(all, event)
		}
	}
	return all
}

// answers reports whether the newest attempt's learner has answered, so that PodsReady is about the workers.
func answers(s *v1alpha1.TrainingRunStatus) bool {
	return len(s.Attempts) > 0 && s.Attempts[0].AnswerTime != nil && s.Attempts[0].CompletionTime == nil
}

// optimizerEvents returns the event of a run whose endpoint turns out to forget the optimizer, which the run permits.
func optimizerEvents(before, after *v1alpha1.TrainingRunStatus) []Event {
	if forgetsOptimizer(before) || !forgetsOptimizer(after) ||
		meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed) {
		return nil
	}
	return []Event{Warning(string(problem.OptimizerNotRestored), "Resume",
		"The endpoint does not restore the optimizer: Adam starts from zero after each resume.")}
}

func forgetsOptimizer(s *v1alpha1.TrainingRunStatus) bool {
	cold := len(s.Attempts) > 0 && ptr.Deref(s.Attempts[0].ColdOptimizer, false)
	return s.LatestCheckpoint != "" && (cold || status.Lacks(s.Capabilities, contract.CapabilityOptimizerRestore))
}

// newEvidence reports whether the problem that Progressing shows has another message than before.
func newEvidence(was, is *metav1.Condition, code problem.Code) bool {
	return was != nil && is.Type == v1alpha1.ConditionProgressing && isEvent(code) && was.Message != is.Message
}

func suspendEvent(was, is *metav1.Condition) (Event, bool) {
	if is.Reason == v1alpha1.ReasonAsExpected {
		return Normal(eventResumed, "Resume", "The run continues."), was != nil && was.Status == metav1.ConditionTrue
	}
	return Normal(is.Reason, "Suspend", is.Message), is.Status != metav1.ConditionFalse
}

// lastPath names the newest checkpoint, at the end of a sentence.
func lastPath(s *v1alpha1.TrainingRunStatus) string {
	latest := status.Latest(s)
	if latest == nil {
		return ""
	}
	return " Its last checkpoint: " + latest.State
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// sameStepFailures is the number of counted failures in a row at one step which show that the step itself fails.
const sameStepFailures = 3

// barrenPauses are the pauses between attempts that make no progress.
var barrenPauses = wait.Backoff{First: 10 * time.Second, Longest: 5 * time.Minute}

// RepairInterval is the time between two pods of attempts that await a repair. The later pod finds out whether the
// repair was made. Backoff returns the whole interval; the caller subtracts the time for which the former pod ran.
const RepairInterval = 45 * time.Second

// AwaitsRepair reports whether an attempt ended because of a problem that a person can repair while the run waits.
func AwaitsRepair(a v1alpha1.Attempt) bool {
	switch contract.Cause(a.Cause) {
	case contract.CauseRefused:
		return true
	case contract.CauseUpstream:
		return problem.NextOf(problem.Code(a.Reason)) == problem.AwaitRepair
	case contract.CauseStartTimeout:
		return a.Reason != "" // The reason says why its pod waited.
	default:
		return false
	}
}

// Join returns the attempts after the newest has ended. If the attempt before it ended for the same reason and awaits
// the same repair, both become one entry.
func Join(attempts []v1alpha1.Attempt) []v1alpha1.Attempt {
	if len(attempts) < 2 || !AwaitsRepair(attempts[0]) || !AwaitsRepair(attempts[1]) || committedStep(attempts[0]) {
		return attempts
	}
	newest, former := attempts[0], attempts[1]
	if newest.Reason != former.Reason {
		return attempts
	}
	newest.Count = max(former.Count, 1) + 1
	newest.StartTime = former.StartTime
	if former.FromStep != nil {
		newest.FromStep, newest.ToStep = former.FromStep, former.ToStep
	}
	return append([]v1alpha1.Attempt{newest}, attempts[2:]...)
}

// CountsAsFailure reports whether an ending counts against failurePolicy.maxRestarts. An ending that a node, the
// scheduler, the endpoint or a user caused does not.
func CountsAsFailure(cause string) bool {
	switch contract.Cause(cause) {
	case contract.CauseCrashed, contract.CauseOOMKilled, contract.CauseUnknown:
		return true
	default:
		return false
	}
}

// Final is the end of a run.
type Final struct {
	// Condition is Complete or Failed.
	Condition string
	// Code is the code of the problem because of which the run has failed; empty if the run is complete.
	Code    problem.Code
	Message string
}

// Reason returns the reason of the condition.
func (f Final) Reason() string {
	if f.Code == "" {
		return v1alpha1.ReasonCompleted
	}
	return problem.Lookup(f.Code).Reason
}

// Finish returns the end of the run if the ending of an attempt ends the run; nil if it does not. The newest entry of
// attempts already has the ending, and failures counts it.
func Finish(policy v1alpha1.FailurePolicy, attempts []v1alpha1.Attempt, failures int32, end Ending) *Final {
	if end.Reason == problem.SettingsDiffer || end.Reason == problem.ResumeRefused {
		return nil // The run waits until the spec is corrected.
	}
	switch end.Cause {
	case contract.CauseCompleted:
		return &Final{v1alpha1.ConditionComplete, "",
			"Every step is committed, and every evaluation has its result."}
	case contract.CauseConfigRejected:
		return &Final{v1alpha1.ConditionFailed, cmp.Or(end.Reason, problem.ConfigRejected),
			cmp.Or(end.Message, "The learner refused its configuration.")}
	case contract.CauseDataRejected:
		return &Final{v1alpha1.ConditionFailed, cmp.Or(end.Reason, problem.DataRejected),
			cmp.Or(end.Message, "The learner refused its data.")}
	}
	if !CountsAsFailure(string(end.Cause)) {
		return nil
	}
	allowed := *policy.MaxRestarts
	if failures <= allowed {
		return nil
	}
	if step, stuck := stuckAt(attempts); stuck {
		return &Final{v1alpha1.ConditionFailed, problem.NoProgress,
			fmt.Sprintf("failurePolicy.maxRestarts (%d) is used up, and the last %d attempts failed at step %d: %s", allowed,
				sameStepFailures, step, end.Message)}
	}
	return &Final{v1alpha1.ConditionFailed, problem.RestartsExhausted,
		fmt.Sprintf("failurePolicy.maxRestarts (%d) is used up without a new checkpoint: %s", allowed, end.Message)}
}

// stuckAt returns the step at which the newest counted failures all occurred, if there are enough of them.
func stuckAt(attempts []v1alpha1.Attempt) (int64, bool) {
	var steps []int64
	for _, a := range attempts {
		if CountsAsFailure(a.Cause) && len(steps) < sameStepFailures {
			steps = append(steps, ptr.Deref(a.ToStep, 0))
		}
	}
	if len(steps) < sameStepFailures || len(slices.Compact(slices.Clone(steps))) > 1 {
		return 0, false
	}
	return steps[0], true
}

// committedStep reports whether an attempt committed a step. An attempt that never reported has no FromStep; its ToStep
// is the step at which its successor began.
func committedStep(a v1alpha1.Attempt) bool {
	return a.FromStep != nil && a.ToStep != nil && *a.ToStep > *a.FromStep
}

// Backoff returns the pause after the newest attempt. It is 0 after an attempt that made progress, and after the first
// one that did not; then 10 s, doubling to 5 minutes. After an attempt that gave up on the endpoint it is at least 10
// s, and after one that awaits a repair always RepairInterval. There is no pause if the next attempt has another spec,
// if a completed run was given more steps, if the Job was suspended, or if the pod could not start: such an attempt has
// already waited itself. A failed init container ends its pod at once, so that the pause is then RepairInterval.
func Backoff(attempts []v1alpha1.Attempt) time.Duration {
	if problem.NextOf(problem.Code(attempts[0].Reason)) == problem.AtOnce ||
		attempts[0].Cause == string(contract.CauseCompleted) {
		return 0
	}
	if attempts[0].Cause == string(contract.CauseStartTimeout) && AwaitsRepair(attempts[0]) &&
		attempts[0].Reason != string(problem.InitContainerFailed) {
		return 0 // Its pod was left for podstate.ReplaceAfter, or for failurePolicy.startDeadlineSeconds.
	}
	if AwaitsRepair(attempts[0]) {
		return RepairInterval
	}
	barren := 0
	for _, a := range attempts {
		if committedStep(a) {
			break
		}
		if !AwaitsRepair(a) {
			barren++
		}
	}
	pause := barrenPauses.After(barren - 1)
	if attempts[0].Cause == string(contract.CauseUpstream) {
		pause = max(pause, barrenPauses.First)
	}
	return pause
}

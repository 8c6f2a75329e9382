// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// The problems of Jobs that another controller has suspended.
var (
	jobSuspended     = problem.Problem{Code: problem.JobSuspended, Evidence: "the learner's Job"}
	workersSuspended = problem.Problem{Code: problem.JobSuspended, Evidence: "the workers' Job"}
)

// suspendedByOther returns the end of an attempt whose learner ran until another controller suspended its Job; end is
// the end of its pod, nil if not known yet. A second pod of the Job would be a second learner of the attempt, so that
// the attempt has ended although its Job has not.
func suspendedByOther(newest v1alpha1.Attempt, l observe.Learner, end *attempt.Ending) *attempt.Ending {
	switch {
	case l.Replaced:
		return &attempt.Ending{Cause: contract.CauseDisrupted, Reason: problem.JobSuspended,
			Message: "Another controller suspended the learner's Job and has resumed it, which " +
				"made a second pod of the attempt."}
	case !desired.SuspendedByOther(l.Job):
		return end
	case end == nil && l.Pod == nil && hasRun(newest):
		return &attempt.Ending{Cause: contract.CauseDisrupted, Reason: problem.JobSuspended,
			Message: "Another controller suspended the learner's Job, which deleted its pod."}
	case end != nil && (end.Cause == contract.CauseDrained || end.Cause == contract.CauseDisrupted):
		end.Reason, end.Message = problem.JobSuspended,
			"Another controller suspended the learner's Job, which ended its pod."
	}
	return end
}

// held reports whether the next attempt waits for another controller to resume the Job of the newest attempt, which has
// ended. The Job stays, since its place in a queue would be lost with it, unless the spec asks for another one.
func held(run *v1alpha1.TrainingRun, seen observe.State) bool {
	job := seen.Learners[status.NewestAttempt(run)].Job
	return status.AttemptEnded(run) && desired.SuspendedByOther(job) && !attempt.JobEnded(job) &&
		len(desired.PendingChanges(run, job)) == 0
}

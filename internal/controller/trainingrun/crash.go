// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// endOf describes the end of an attempt, with the end of its log if it crashed.
func endOf(a v1alpha1.Attempt) string {
	return strings.TrimSpace(fmt.Sprintf("Attempt %d ended (%s): %s", a.Number, a.Cause, a.Message))
}

// withCrash adds to a message why the learner crashed the last time, until a checkpoint of a further step is saved.
func (v view) withCrash(c status.Condition) status.Condition {
	if ptr.Deref(v.next.FailuresSinceCheckpoint, 0) == 0 || v.finished() || v.suspended() {
		return c
	}
	for _, a := range v.next.Attempts {
		if a.CompletionTime == nil || !attempt.CountsAsFailure(a.Cause) {
			continue
		}
		if end := endOf(a); !strings.Contains(c.Message, end) {
			c.Message += " " + end
		}
		break
	}
	return c
}

// earlierJobs returns the learner Jobs of earlier attempts that are to be deleted: the create request of a crashed
// manager may arrive late. The Job of a crashed attempt may stay for its log. Jobs of later attempts are left alone:
// they mean that this view of the run is old.
func earlierJobs(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) []client.Object {
	newest := status.NewestAttempt(run)
	var jobs []client.Object
	for _, number := range slices.Sorted(maps.Keys(seen.Learners)) {
		if number >= newest {
			break
		}
		log := !status.AttemptEnded(run) && !suspended(run, seen, now) && len(run.Status.Attempts) > 1 &&
			run.Status.Attempts[1].Number == number
		if !log || !keepsLog(run.Status.Attempts[1], seen) {
			jobs = append(jobs, learnerJob(seen, number)...)
		}
	}
	return jobs
}

// keepsLog reports whether the Job of an attempt that crashed is kept for the log of its pod while the next attempt is
// in progress. Such a Job makes no other pod.
func keepsLog(a v1alpha1.Attempt, seen observe.State) bool {
	pod := seen.Learners[a.Number].Pod
	return attempt.CountsAsFailure(a.Cause) && pod != nil && podstate.Termination(pod, desired.LearnerContainer) != nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// learnerRunning reports whether a learner's container runs, and since when.
func learnerRunning(pod *corev1.Pod) (time.Time, bool) {
	return podstate.Running(pod, desired.LearnerContainer)
}

// graceLeft returns the time after which the run is stalled if its learner still does not run. It counts from the time
// at which its pod was found unschedulable, since an autoscaler may need a while to add a node, or else from the
// beginning of the wait.
func graceLeft(run *v1alpha1.TrainingRun, newest v1alpha1.Attempt, l observe.Learner, now time.Time) time.Duration {
	since, unschedulable := podstate.Unschedulable(l.Pod)
	if !unschedulable {
		since = waitsSince(newest, l, now)
	}
	return max(0, since.Add(seconds(*run.Spec.StalledAfterSeconds)).Sub(now))
}

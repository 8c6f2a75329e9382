// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// learnerRunning says that a learner's container runs, and since when.
func learnerRunning(pod *corev1.Pod) (time.Time, bool) {
	return podstate.Running(pod, desired.LearnerContainer)
}

// graceLeft is how long a pod that cannot be scheduled may remain so before the run is stalled: an autoscaler may add a
// node meanwhile. It is 0 for any other pod.
func graceLeft(run *v1alpha1.TrainingRun, pod *corev1.Pod, now time.Time) time.Duration {
	since, unschedulable := podstate.Unschedulable(pod)
	if !unschedulable {
		return 0
	}
	return max(0, since.Add(seconds(*run.Spec.FailurePolicy.StalledAfterSeconds)).Sub(now))
}

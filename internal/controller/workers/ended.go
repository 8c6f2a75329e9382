// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// maxLine bounds how much of a log a message quotes.
const maxLine = 256

// Ended returns the problem of workers that have ended although they should run; the zero value if there is none, or if
// other workers are ready in their place. A worker of another version comes first, since it shows the version of all
// workers; otherwise the newest crash counts.
func Ended(run *v1alpha1.TrainingRun, job *batchv1.Job, pods []corev1.Pod) problem.Problem {
	ready := map[string]bool{}
	for i := range pods {
		if podstate.Ready(&pods[i]) {
			ready[indexOf(&pods[i])] = true
		}
	}
	var newest *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		ended := podstate.Termination(pod, desired.RolloutContainer)
		if ended == nil || !metav1.IsControlledBy(pod, job) {
			continue
		}
		if ended.ExitCode == contract.ExitVersion {
			return ofVersion(run, podstate.LogEnd(ended.Message, maxLine))
		}
		// Kubernetes replaces pods that it disrupted, and a worker that a drained node stopped has not crashed.
		if ended.ExitCode == 0 || podstate.DisruptionOf(pod) != podstate.NotDisrupted || ready[indexOf(pod)] {
			continue
		}
		if newest == nil || podstate.Termination(newest, desired.RolloutContainer).FinishedAt.Before(&ended.FinishedAt) {
			newest = pod
		}
	}
	if newest == nil {
		return failedInit(job, pods, ready)
	}
	if keyRefused(newest) {
		return refusedKey(run)
	}
	return crash(newest)
}

// failedInit returns the problem of workers whose init containers failed; the zero value if there is none, or if other
// workers are ready in their place.
func failedInit(job *batchv1.Job, pods []corev1.Pod, ready map[string]bool) problem.Problem {
	for i := range pods {
		failed := podstate.FailedInit(&pods[i], Fields.Pod)
		if failed.NeedsAction() && metav1.IsControlledBy(&pods[i], job) && !ready[indexOf(&pods[i])] {
			return failed
		}
	}
	return problem.Problem{}
}

// indexOf returns the index of a worker within its Job. A pod that replaces the worker has the same index.
func indexOf(pod *corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }

func crash(pod *corev1.Pod) problem.Problem {
	ended := podstate.Termination(pod, desired.RolloutContainer)
	if podstate.OutOfMemory(ended) {
		return problem.Problem{Code: problem.WorkersOutOfMemory, Evidence: fmt.Sprintf("pod %q", pod.Name)}
	}
	text := fmt.Sprintf("pod %q exited with code %d and left no log", pod.Name, ended.ExitCode)
	if line := podstate.LogEnd(ended.Message, maxLine); line != "" {
		text = fmt.Sprintf("pod %q exited with code %d; its log ends: %s", pod.Name, ended.ExitCode, line)
	}
	return problem.Problem{Code: problem.WorkersCrashed, Evidence: text}
}

// ofVersion returns the problem of workers whose version is not the run's. Workers of the manager's image are replaced.
func ofVersion(run *v1alpha1.TrainingRun, log string) problem.Problem {
	if image := desired.PodOverrides(run, v1alpha1.TargetWorkers).Image; image != "" {
		return problem.Problem{Code: problem.ImageOfOtherVersion, Evidence: fmt.Sprintf("%q: %s", image, log)}
	}
	return problem.Problem{Code: problem.VersionRefused, Evidence: log}
}

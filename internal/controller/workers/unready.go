// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// MayBeUnready reports whether no worker is ready although the Job is old enough for Unready to find a problem.
func MayBeUnready(run *v1alpha1.TrainingRun, job *batchv1.Job, now time.Time) bool {
	return ptr.Deref(job.Status.Ready, 0) == 0 && now.Sub(job.CreationTimestamp.Time) >= unreadyAfter(run)
}

func unreadyAfter(run *v1alpha1.TrainingRun) time.Duration {
	return time.Duration(*run.Spec.StalledAfterSeconds) * time.Second
}

// Unready returns the problem of workers that run and are not ready: none of them has had an answer of the learner for
// stalledAfterSeconds. It returns the zero value while a worker is ready, and does not count workers that have just
// begun.
func Unready(run *v1alpha1.TrainingRun, job *batchv1.Job, pods []corev1.Pod, now time.Time) problem.Problem {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var first *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, job) || pod.DeletionTimestamp != nil {
			continue
		}
		since, running := podstate.Running(pod, desired.RolloutContainer)
		switch {
		case podstate.Ready(pod):
			return problem.Problem{}
		case running && now.Sub(since) >= unreadyAfter(run) && first == nil:
			first = pod
		}
	}
	if first == nil {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.WorkersUnanswered, Evidence: fmt.Sprintf("pod %q", first.Name)}
}

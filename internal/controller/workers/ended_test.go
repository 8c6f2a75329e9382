// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func TestEndedObstacle(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "rollout", UID: "job"}}
	owner := *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
	worker := func(name, index string, change func(*corev1.Pod)) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{owner},
			Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: index},
		}}
		change(&pod)
		return pod
	}
	exited := func(code int32, reason, message string, ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "rollout",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.NewTime(now.Add(-ago)),
				}}}}
		}
	}
	running := func(ready corev1.ConditionStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "rollout",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}
	}
	crashed := func(evidence string) problem.Problem {
		return problem.Problem{Code: problem.WorkersCrashed, Evidence: evidence}
	}
	old := worker("old", "0", exited(1, "Error", "rollout: old", time.Hour))
	cases := map[string]struct {
		pods []corev1.Pod
		want problem.Problem
	}{
		"none": {nil, problem.Problem{}},
		"the newest crash": {[]corev1.Pod{old,
			worker("new", "1", exited(2, "Error", "starting\nrollout: why", 0))},
			crashed(`pod "new" exited with code 2; its log ends: rollout: why`)},
		"another runs in its place": {[]corev1.Pod{old, worker("next", "0", running("True"))}, problem.Problem{}},
		"another starts in its place": {[]corev1.Pod{old, worker("next", "0", running("False"))},
			crashed(`pod "old" exited with code 1; its log ends: rollout: old`)},
		"another runs in other's place": {[]corev1.Pod{old, worker("next", "1", running("True"))},
			crashed(`pod "old" exited with code 1; its log ends: rollout: old`)},
		"no log": {[]corev1.Pod{worker("w", "0", exited(137, "Error", "", 0))},
			crashed(`pod "w" exited with code 137 and left no log`)},
		"out of memory": {[]corev1.Pod{worker("w", "0", exited(137, "OOMKilled", "", 0))},
			problem.Problem{Code: problem.WorkersOutOfMemory, Evidence: `pod "w"`}},
		"an evicted worker": {[]corev1.Pod{worker("w", "0", func(pod *corev1.Pod) {
			exited(137, "Error", "", 0)(pod)
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: "True",
				Reason: "EvictionByEvictionAPI"}}
		})}, problem.Problem{}},
		"a copy that somebody made": {[]corev1.Pod{worker("w", "0", func(pod *corev1.Pod) {
			exited(1, "Error", "", 0)(pod)
			pod.OwnerReferences = nil
		})}, problem.Problem{}},
		"a refused key": {[]corev1.Pod{worker("w", "0", exited(78, "Error", "", 0))},
			problem.Problem{Code: problem.WorkersKeyRefused, Evidence: `key "TINKER_API_KEY" of Secret "tinker"`}},
		"an init container that failed": {[]corev1.Pod{worker("w", "0", func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
		})}, problem.Problem{Code: problem.InitContainerFailed, Evidence: `"fetch" exited with code 1`,
			Field: "podOverrides[target=Workers].initContainers"}},
		"another version": {[]corev1.Pod{worker("w", "0", exited(76, "Error", "rollout: version 3", time.Minute)),
			worker("v", "1", exited(1, "Error", "", 0))}, problem.Problem{
			Code: problem.VersionRefused, Evidence: "rollout: version 3"}},
	}
	run := &v1alpha1.TrainingRun{}
	run.Spec.Tinker.APIKeySecretKeyRef = &ref.SecretKey{Name: "tinker", Key: "TINKER_API_KEY"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Ended(run, job, tc.pods)); diff != "" {
				t.Errorf("Ended (-want +got):\n%s", diff)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReplaceAt(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "rollout", UID: "job"}}
	owner := *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
	worker := func(index string, age time.Duration, state corev1.ContainerState, change ...func(*corev1.Pod)) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences:   []metav1.OwnerReference{owner},
			Annotations:       map[string]string{batchv1.JobCompletionIndexAnnotation: index},
			CreationTimestamp: metav1.NewTime(now.Add(-age)),
		}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "rollout", State: state}}
		for _, c := range change {
			c(&pod)
		}
		return pod
	}
	exited := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	unschedulable := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = nil
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	copied := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	serverImage := func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "environment-a", State: waits("ImagePullBackOff")}}
	}
	cases := map[string]struct {
		pods []corev1.Pod
		want time.Duration // from now; an hour means never
	}{
		"no pods":       {nil, time.Hour},
		"a refused key": {[]corev1.Pod{worker("0", 40*time.Second, exited(78))}, 5 * time.Second},
		"an image that is missing": {[]corev1.Pod{worker("0", time.Minute, waits("ImagePullBackOff"))},
			-15 * time.Second},
		"an image that was not found just now": {[]corev1.Pod{worker("0", 2*time.Second, waits("ErrImagePull"))},
			43 * time.Second},
		"the image of an environment server": {[]corev1.Pod{worker("0", time.Minute, waits("PodInitializing"),
			serverImage)}, -15 * time.Second},
		"the newest pod decides when": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("1", 40*time.Second, exited(78))}, 5 * time.Second},
		"another worker runs": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("1", time.Hour, runs)}, time.Hour},
		"another worker starts": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("1", 0, waits("ContainerCreating"))}, time.Hour},
		"its successor runs": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("0", time.Second, runs)}, time.Hour},
		"its successor fits nowhere": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("0", time.Second, waits(""), unschedulable)}, time.Hour},
		"another worker fits nowhere": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("1", time.Minute, waits(""), unschedulable)}, -15 * time.Second},
		"another worker has no Secret": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("1", time.Minute, waits("CreateContainerConfigError"))}, -15 * time.Second},
		"a worker that crashed": {[]corev1.Pod{worker("0", time.Minute, exited(1))}, time.Hour},
		"a copy that somebody made does not run": {[]corev1.Pod{worker("0", time.Minute, exited(78)),
			worker("1", time.Minute, runs, copied)}, -15 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := now.Add(tc.want)
			if tc.want == time.Hour {
				want = time.Time{}
			}
			if got := ReplaceAt(job, tc.pods); !got.Equal(want) {
				t.Errorf("ReplaceAt = %v, want %v", got, want)
			}
		})
	}
}

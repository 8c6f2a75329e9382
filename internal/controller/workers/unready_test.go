// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

func TestUnready(t *testing.T) {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "run", UID: "0123456789"}}
	admit.Default(run)
	job := desired.RolloutJob(run, 1, "credentials", desired.Settings{})
	job.UID = "job"
	worker := func(name string, since time.Duration, ready corev1.ConditionStatus) corev1.Pod {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job,
				batchv1.SchemeGroupVersion.WithKind("Job"))},
		}}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  desired.RolloutContainer,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}},
		}}
		return pod
	}
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"none":               {nil, ""},
		"one that has begun": {[]corev1.Pod{worker("a", time.Second, "False")}, ""},
		"none has become ready": {[]corev1.Pod{worker("b", time.Hour, "False"), worker("a", time.Hour, "False")},
			`pod "a"`},
		"one is ready": {[]corev1.Pod{worker("a", time.Hour, "False"), worker("b", time.Hour, "True")}, ""},
		"a pod of another owner": {[]corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Status: worker("a", time.Hour, "False").Status}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unready(run, job, tc.pods, now); got.NeedsAction() != (tc.want != "") || !strings.Contains(got.Message(),
				tc.want) {
				t.Errorf("Unready = %+v, want %q", got, tc.want)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func podWith(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry/image:1"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "sidecar"}, {Name: "main", State: state},
		}},
	}
}

func podThatWaits(reason, message string) *corev1.Pod {
	return podWith(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func podUnscheduled(words string) *corev1.Pod {
	pod := podWith(corev1.ContainerState{})
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: words,
	}}
	return pod
}

func podWithInit(name string, phase corev1.PodPhase, state, last corev1.ContainerState) *corev1.Pod {
	pod := podThatWaits("PodInitializing", "")
	pod.Spec.InitContainers = []corev1.Container{{Name: name, Image: "registry/init:1"}}
	pod.Status.Phase = phase
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: name, State: state, LastTerminationState: last,
		Image: "registry/init:1"}}
	return pod
}

func initThatWaits(name, reason, message string) *corev1.Pod {
	return podWithInit(name, corev1.PodPending,
		corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3,
			Message: "listening\nproxy: no route"}})
}

func TestFailedInit(t *testing.T) {
	exited := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code,
			Message: "fetching\nfetch: token=secret is refused"}}
	}
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		pod := podWithInit("fetch", corev1.PodFailed, exited(1), corev1.ContainerState{})
		for _, change := range changes {
			change(pod)
		}
		return pod
	}
	failed := problem.Problem{Code: problem.InitContainerFailed, Field: "podOverrides[target=Learner].initContainers",
		Evidence: `"fetch" exited with code 1; its log ends: fetch: token=[redacted] is refused`}
	cases := map[string]struct {
		pod  *corev1.Pod
		want problem.Problem
	}{
		"no pod":          {nil, problem.Problem{}},
		"one that failed": {pod(), failed},
		"one that ended": {pod(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].State = exited(0) }),
			problem.Problem{}},
		"a pod in progress": {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), problem.Problem{}},
		"an evicted pod":    {pod(func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), problem.Problem{}},
		"a disrupted pod": {pod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: "True"}}
		}), problem.Problem{}},
		"a server of an environment": {pod(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].Name = "environment-a" }),
			problem.Problem{}},
		"packages that cannot be installed": {pod(func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].Name = "install-packages-0"
		}), problem.Problem{Code: problem.PackagesUnavailable, Evidence: "fetch: token=[redacted] is refused"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, FailedInit(tc.pod, "podOverrides[target=Learner]")); diff != "" {
				t.Errorf("FailedInit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	cases := map[string]struct {
		pod  *corev1.Pod
		want problem.Problem
	}{
		"no pod yet":  {nil, problem.Problem{}},
		"a fresh pod": {&corev1.Pod{}, problem.Problem{}},
		"being made":  {podThatWaits("ContainerCreating", ""), problem.Problem{}},
		"no node": {podUnscheduled("0/1 nodes"),
			problem.Problem{Code: problem.Unschedulable, Evidence: "0/1 nodes", Field: "the pod"}},
		"no node yet": {podUnscheduled("0/2 nodes are available: 2 Insufficient cpu. "),
			problem.Problem{Code: problem.Unschedulable, Evidence: "0/2 nodes are available: 2 Insufficient cpu",
				Field: "the pod"}},
		"no claim": {podUnscheduled(`0/1 nodes are available: persistentvolumeclaim "c" not found. not found`),
			problem.Problem{Code: problem.ClaimNotFound, Evidence: `"c" in namespace "ns"`, Field: "claim of c"}},
		"no Secret": {podThatWaits("CreateContainerConfigError", `secret "s" not found`),
			problem.Problem{Code: problem.SecretNotFound, Evidence: `"s" in namespace "ns"`, Field: "field of s"}},
		"no key": {podThatWaits("CreateContainerConfigError", `couldn't find key k in Secret ns/s`),
			problem.Problem{Code: problem.SecretKeyNotFound, Evidence: `key "k" of Secret "s"`, Field: "field of s"}},
		"no config": {podThatWaits("CreateContainerConfigError", `configmap "c" not found`),
			problem.Problem{Code: problem.ConfigNotFound, Evidence: `configmap "c" not found`, Field: "the pod"}},
		"no image": {podThatWaits("ErrImagePull", "long and changing"),
			problem.Problem{Code: problem.ImagePullFailed, Evidence: `"registry/image:1"`, Field: "the image"}},
		"still none": {podThatWaits("ImagePullBackOff", "another text"),
			problem.Problem{Code: problem.ImagePullFailed, Evidence: `"registry/image:1"`, Field: "the image"}},
		"no init image": {initThatWaits("fetch", "ErrImagePull", ""),
			problem.Problem{Code: problem.ImagePullFailed, Evidence: `"registry/init:1"`, Field: "the pod.initContainers"}},
		"no init Secret": {initThatWaits("fetch", "CreateContainerConfigError", `secret "s" not found`),
			problem.Problem{Code: problem.SecretNotFound, Evidence: `"s" in namespace "ns"`, Field: "the pod.initContainers"}},
		"a sidecar fails": {initThatWaits("proxy", "CrashLoopBackOff", "back-off"),
			problem.Problem{Code: problem.InitContainerFailed,
				Evidence: `"proxy" exited with code 3; its log ends: proxy: no route`, Field: "the pod.initContainers"}},
		"no server image": {initThatWaits("environment-a", "ErrImagePull", ""),
			problem.Problem{Code: problem.ImagePullFailed, Evidence: `"registry/init:1" of container "environment-a"`,
				Field: "ors.server.image or execution.image of the RewardEnvironment, or the image"}},
		"a server fails": {initThatWaits("environment-a", "CrashLoopBackOff", ""), problem.Problem{
			Code:     problem.ServerCrashed,
			Evidence: `pod "", container "environment-a" exited with code 3; its log ends: proxy: no route`}},
		"no packages yet": {initThatWaits("install-packages-0", "ErrImagePull", ""),
			problem.Problem{Code: problem.ImagePullFailed, Evidence: `"registry/init:1"`, Field: "execution.image"}},
		"no password of the index": {initThatWaits("install-packages-0", "CreateContainerConfigError", `secret "s" not found`),
			problem.Problem{Code: problem.SecretNotFound, Evidence: `"s" in namespace "ns"`,
				Field: "execution.index.secretRef"}},
		"no run": {podThatWaits("CreateContainerError", "exec"),
			problem.Problem{Code: problem.ContainerRefused, Evidence: "exec", Field: "the pod"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Waiting(tc.pod, "main", Fields{
				Image: "the image", Pod: "the pod",
				Secret: func(s string) string { return "field of " + s },
				Claim:  func(s string) string { return "claim of " + s },
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Waiting (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContainerStates(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	running := podWith(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}})
	if since, ok := Running(running, "main"); !ok || !since.Equal(at) {
		t.Errorf("Running = %v, %v", since, ok)
	}
	if _, ok := Running(running, "sidecar"); ok {
		t.Error("another container runs")
	}
	if _, ok := Running(nil, "main"); ok || Termination(nil, "main") != nil {
		t.Error("no pod runs, or has ended")
	}
	ended := podWith(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}})
	if got := Termination(ended, "main"); got == nil || got.ExitCode != 3 {
		t.Errorf("Termination = %v", got)
	}
}

func TestDisruptions(t *testing.T) {
	marked := func(reason string, deleted bool, ready corev1.ConditionStatus) *corev1.Pod {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
			Status: ready}}}}
		if reason != "" {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
				Status: corev1.ConditionTrue, Reason: reason})
		}
		if deleted {
			pod.DeletionTimestamp = &metav1.Time{}
		}
		return pod
	}
	cases := map[string]struct {
		pod    *corev1.Pod
		want   Disruption
		silent bool
	}{
		"left alone":                       {marked("", false, "True"), NotDisrupted, false},
		"deleted":                          {marked("", true, "True"), Disrupted, false},
		"preempted":                        {marked("PreemptionByScheduler", true, "True"), Disrupted, false},
		"evicted from a node that answers": {marked("DeletionByTaintManager", true, "True"), NodeLost, false},
		"evicted from a silent node":       {marked("DeletionByTaintManager", true, "False"), NodeLost, true},
		"not deleted yet":                  {marked("DeletionByTaintManager", false, "False"), NodeLost, false},
		"collected":                        {marked("DeletionByPodGC", false, "False"), NodeLost, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := DisruptionOf(tc.pod); got != tc.want {
				t.Errorf("DisruptionOf = %v, want %v", got, tc.want)
			}
			if got := NodeSilent(tc.pod); got != tc.silent {
				t.Errorf("NodeSilent = %v, want %v", got, tc.silent)
			}
		})
	}
}

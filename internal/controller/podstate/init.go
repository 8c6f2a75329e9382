// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// maxInitLog bounds how much of the log of an init container a message quotes.
const maxInitLog = 96

// FailedInit returns the problem of a pod that ended before its main container began, because one of a user's init
// containers failed; the zero value if none did. pod is the field of the spec with the pod's settings.
func FailedInit(ended *corev1.Pod, pod string) problem.Problem {
	if ended == nil || ended.Status.Phase != corev1.PodFailed || DisruptionOf(ended) != NotDisrupted ||
		ended.Status.Reason != "" {
		return problem.Problem{}
	}
	for _, c := range usersInit(ended) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return failedInit(c.Name, t, pod)
		}
	}
	return problem.Problem{}
}

// initWaiting returns the problem that keeps a user's init containers from running, or a sidecar among them from
// staying up.
func initWaiting(pod *corev1.Pod, fields Fields) problem.Problem {
	field := fields.Pod + ".initContainers"
	own := Fields{Image: field, Secret: func(string) string { return field }, Claim: fields.Claim, Pod: field}
	for _, c := range usersInit(pod) {
		if c.State.Waiting == nil {
			continue
		}
		if last := c.LastTerminationState.Terminated; last != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
			return failedInit(c.Name, last, fields.Pod)
		}
		of := own
		if strings.HasPrefix(c.Name, v1alpha1.PackagesContainerPrefix) {
			of = Fields{Image: "execution.image", Secret: func(string) string { return "execution.index.secretRef" },
				Claim: fields.Claim, Pod: field}
		}
		if found := waiting(pod, &c, of); found.NeedsAction() {
			return found
		}
	}
	return problem.Problem{}
}

// serverCrashing returns the problem of a pod whose main container does not begin because the server or the functions
// of an environment, which run beside it, end; the zero value if none does.
func serverCrashing(pod *corev1.Pod, main string) problem.Problem {
	if _, running := Running(pod, main); running {
		return problem.Problem{}
	}
	for _, c := range pod.Status.InitContainerStatuses {
		last := c.LastTerminationState.Terminated
		if last == nil {
			last = c.State.Terminated
		}
		if !strings.HasPrefix(c.Name, v1alpha1.ServerContainerPrefix) || last == nil || ptr.Deref(c.Started, false) {
			continue
		}
		return problem.Problem{Code: problem.ServerCrashed,
			Evidence: fmt.Sprintf("pod %q, container %s", pod.Name, ended(c.Name, last))}
	}
	return problem.Problem{}
}

func usersInit(pod *corev1.Pod) []corev1.ContainerStatus {
	var users []corev1.ContainerStatus
	for _, c := range pod.Status.InitContainerStatuses {
		if !strings.HasPrefix(c.Name, v1alpha1.ServerContainerPrefix) {
			users = append(users, c)
		}
	}
	return users
}

func failedInit(name string, t *corev1.ContainerStateTerminated, pod string) problem.Problem {
	if strings.HasPrefix(name, v1alpha1.PackagesContainerPrefix) {
		return problem.Problem{Code: problem.PackagesUnavailable, Evidence: LogEnd(t.Message, maxInitLog)}
	}
	return problem.Problem{Code: problem.InitContainerFailed, Evidence: ended(name, t), Field: pod + ".initContainers"}
}

// ended says how a container ended.
func ended(name string, t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("%q exited with code %d", name, t.ExitCode)
	if line := LogEnd(t.Message, maxInitLog); line != "" {
		text += "; its log ends: " + line
	}
	return text
}

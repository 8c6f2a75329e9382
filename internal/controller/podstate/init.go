// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// maxInitLog bounds how much of the log of an init container a message quotes.
const maxInitLog = 96

// FailedInit says which of a user's init containers failed, so that a pod has ended without its main container; nothing
// where none did. pod names the field with what a user decides of the pod.
func FailedInit(ended *corev1.Pod, pod string) Obstacle {
	if ended == nil || ended.Status.Phase != corev1.PodFailed || DisruptionOf(ended) != NotDisrupted ||
		ended.Status.Reason != "" {
		return Obstacle{}
	}
	for _, c := range usersInit(ended) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return failedInit(c.Name, t, pod)
		}
	}
	return Obstacle{}
}

// initWaiting says what keeps a user's init containers from running, or a sidecar among them from staying up.
func initWaiting(pod *corev1.Pod, fields Fields) Obstacle {
	field := fields.Pod + ".initContainers"
	own := Fields{Image: field, Secret: func(string) string { return field }, Claim: fields.Claim, Pod: field}
	for _, c := range usersInit(pod) {
		if c.State.Waiting == nil {
			continue
		}
		if last := c.LastTerminationState.Terminated; last != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
			return failedInit(c.Name, last, fields.Pod)
		}
		if o := waiting(pod, &c, own); o.NeedsAction {
			return o
		}
	}
	return Obstacle{}
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

func failedInit(name string, t *corev1.ContainerStateTerminated, pod string) Obstacle {
	text := fmt.Sprintf("Init container %q exited with code %d", name, t.ExitCode)
	if line := LogEnd(t.Message, maxInitLog); line != "" {
		text += fmt.Sprintf(" (its log ends: %s)", line)
	}
	return Obstacle{v1alpha1.ReasonInitContainerFailed, text + ": correct it in " + pod +
		".initContainers, or what it needs.", true}
}

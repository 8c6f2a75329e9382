// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstate reads the state of a pod's main container, and whether a Job has ended. It decides nothing.
package podstate

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// JobEnd returns the condition with which a Job has ended by itself; nil while it has not ended.
func JobEnd(job *batchv1.Job) *batchv1.JobCondition {
	at := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
	if at < 0 {
		return nil
	}
	return &job.Status.Conditions[at]
}

// Termination returns the end of a container; nil while it has not ended.
func Termination(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	c := statusOf(pod, container)
	if c == nil {
		return nil
	}
	return c.State.Terminated
}

// Lasted returns how long a terminated container ran; 0 if that is not known.
func Lasted(pod *corev1.Pod, container string) time.Duration {
	if pod == nil {
		return 0
	}
	ended := Termination(pod, container)
	if ended == nil || ended.StartedAt.IsZero() {
		return 0
	}
	return max(0, ended.FinishedAt.Sub(ended.StartedAt.Time))
}

// OutOfMemory reports whether the kernel ended a container because it used more memory than its limit.
func OutOfMemory(t *corev1.ContainerStateTerminated) bool { return t.Reason == "OOMKilled" }

// Running reports whether a container runs, and since when.
func Running(pod *corev1.Pod, container string) (time.Time, bool) {
	c := statusOf(pod, container)
	if c == nil || c.State.Running == nil {
		return time.Time{}, false
	}
	return c.State.Running.StartedAt.Time, true
}

// ImageID returns the image of a sidecar of the main container, as the runtime identifies it; "" if that is not known.
func ImageID(pod *corev1.Pod, sidecar string) string {
	if pod == nil {
		return ""
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == sidecar {
			return c.ImageID
		}
	}
	return ""
}

// InitTermination returns how an init container of a pod ended; nil while it has not.
func InitTermination(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	if pod == nil {
		return nil
	}
	for i := range pod.Status.InitContainerStatuses {
		if c := &pod.Status.InitContainerStatuses[i]; c.Name == container {
			return c.State.Terminated
		}
	}
	return nil
}

// Ready reports whether a pod is ready.
func Ready(pod *corev1.Pod) bool {
	c := conditionOf(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	if pod == nil {
		return nil
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Reasons of the pod condition DisruptionTarget that the Kubernetes controllers give for silent nodes.
const (
	deletedByTaint = "DeletionByTaintManager"
	deletedByGC    = "DeletionByPodGC"
)

// Disruption is the cause of an end of a pod that the program in it did not cause.
type Disruption int

// The disruptions.
const (
	// NotDisrupted says that no disruption of the pod is known.
	NotDisrupted Disruption = iota
	// Disrupted says that the pod was deleted, evicted or preempted.
	Disrupted
	// NodeLost says that the pod's node does not answer, or is deleted.
	NodeLost
)

// DisruptionOf returns the disruption that has ended a pod, or ends it.
func DisruptionOf(pod *corev1.Pod) Disruption {
	c := conditionOf(pod, corev1.DisruptionTarget)
	switch disrupted := c != nil && c.Status == corev1.ConditionTrue; {
	case disrupted && (c.Reason == deletedByTaint || c.Reason == deletedByGC):
		return NodeLost
	case disrupted, pod.DeletionTimestamp != nil:
		return Disrupted
	default:
		return NotDisrupted
	}
}

// NodeSilent reports whether a pod is being deleted because its node does not answer, so that nothing reports when the
// pod has stopped. The node's controller marks such a pod not ready; a kubelet that answers keeps a pod ready until it
// has stopped.
func NodeSilent(pod *corev1.Pod) bool {
	target, ready := conditionOf(pod, corev1.DisruptionTarget), conditionOf(pod, corev1.PodReady)
	evicted := target != nil && target.Status == corev1.ConditionTrue && target.Reason == deletedByTaint
	return pod.DeletionTimestamp != nil && evicted && ready != nil && ready.Status != corev1.ConditionTrue
}

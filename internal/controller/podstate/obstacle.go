// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Obstacle is why a container does not run yet.
type Obstacle struct {
	// Reason is a reason of the condition PodsReady.
	Reason string
	// Message says what to do. It does not change while the obstacle stays.
	Message string
	// NeedsAction says that somebody has to act; otherwise the problem passes by itself.
	NeedsAction bool
}

// Fields names the fields by which a user can fix a pod.
type Fields struct {
	// Image names the field of the image.
	Image string
	// Secret names the field that refers to a Secret.
	Secret func(name string) string
	// Claim names the field that refers to a PersistentVolumeClaim.
	Claim func(name string) string
	// Pod names the field with everything else that a user decides of the pod.
	Pod string
}

// Waiting says what a pod's container waits for. The manager cannot read Secrets: that one is missing, or
// has not the key, is what the kubelet says when it makes the container. A nil pod has not been made yet.
func Waiting(pod *corev1.Pod, container string, fields Fields) Obstacle {
	if pod == nil {
		return Obstacle{v1alpha1.ReasonStarting, "The pod has not been made yet.", false}
	}
	if c := unschedulable(pod); c != nil {
		return unscheduled(pod.Namespace, c.Message, fields)
	}
	if c := statusOf(pod, container); c != nil && c.State.Waiting != nil {
		if o := waiting(pod, c, fields); o.NeedsAction {
			return o
		}
	}
	if o := initWaiting(pod, fields); o.NeedsAction {
		return o
	}
	if c := imageMissing(pod); c != nil {
		return Obstacle{v1alpha1.ReasonImagePullFailed,
			fmt.Sprintf("Image %q of container %q cannot be pulled: correct ors.server.image or execution.image of the "+
				"RewardEnvironment, or %s.",
				c.Image, c.Name, fields.Image), true}
	}
	return Obstacle{v1alpha1.ReasonStarting, "The pod is starting.", false}
}

// Unschedulable says that the scheduler finds no node for a pod, and since when.
func Unschedulable(pod *corev1.Pod) (time.Time, bool) {
	c := unschedulable(pod)
	if c == nil {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

func unschedulable(pod *corev1.Pod) *corev1.PodCondition {
	if pod == nil {
		return nil
	}
	c := conditionOf(pod, corev1.PodScheduled)
	if c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return c
	}
	return nil
}

func waiting(pod *corev1.Pod, c *corev1.ContainerStatus, fields Fields) Obstacle {
	switch state := c.State.Waiting; {
	case state.Reason == "CreateContainerConfigError":
		return missing(pod.Namespace, state.Message, fields)
	case state.Reason == "InvalidImageName", state.Reason == "ErrImageNeverPull",
		slices.Contains(imageFailures, state.Reason):
		return Obstacle{v1alpha1.ReasonImagePullFailed, fmt.Sprintf("Image %q cannot be pulled: correct %s.",
			imageOf(pod, c.Name), fields.Image), true}
	case state.Reason == "CreateContainerError", state.Reason == "RunContainerError":
		return Obstacle{v1alpha1.ReasonContainerRefused, fmt.Sprintf("The container cannot be made: %s: correct %s.",
			state.Message, fields.Pod), true}
	default:
		return Obstacle{v1alpha1.ReasonStarting, "The pod is starting.", false}
	}
}

// imageFailures are what a container waits for while its image cannot be pulled and is pulled again.
var imageFailures = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"}

// ReplaceAfter is the age at which a pod is replaced that waits for an image: the kubelet tries to pull it ever more
// rarely, up to every five minutes, and at once for another pod.
const ReplaceAfter = 45 * time.Second

// ImageMissing says that a container of a pod waits for an image that could not be pulled.
func ImageMissing(pod *corev1.Pod) bool {
	return pod != nil && pod.DeletionTimestamp == nil && imageMissing(pod) != nil
}

func imageMissing(pod *corev1.Pod) *corev1.ContainerStatus {
	missing := func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && slices.Contains(imageFailures, c.State.Waiting.Reason)
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		if i := slices.IndexFunc(list, missing); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// ReplaceIn is how long a pod that waits for an image is left; 0 or less once it is to be replaced.
func ReplaceIn(pod *corev1.Pod, now time.Time) time.Duration {
	return pod.CreationTimestamp.Add(ReplaceAfter).Sub(now)
}

// noClaim matches the scheduler's message about a PersistentVolumeClaim that does not exist.
var noClaim = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" not found`)

func unscheduled(namespace, words string, fields Fields) Obstacle {
	if found := noClaim.FindStringSubmatch(words); found != nil {
		return Obstacle{v1alpha1.ReasonUnschedulable,
			fmt.Sprintf("PersistentVolumeClaim %q does not exist in namespace %q: create it, or correct %s.", found[1],
				namespace, fields.Claim(found[1])), true}
	}
	return Obstacle{v1alpha1.ReasonUnschedulable,
		fmt.Sprintf("The pod cannot be scheduled: %s: add a node that fits, or correct %s.", strings.TrimRight(words, ". "),
			fields.Pod), true}
}

// imageOf returns the image as the spec has it; the status has it as the runtime resolved it.
func imageOf(pod *corev1.Pod, container string) string {
	all := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return ""
	}
	return all[i].Image
}

// These match the kubelet's messages about variables that it cannot set.
var (
	noSecret    = regexp.MustCompile(`secrets? "([^"]+)" not found`)
	noSecretKey = regexp.MustCompile(`couldn't find key (\S+) in Secret \S+/(\S+)`)
)

func missing(namespace, words string, fields Fields) Obstacle {
	if found := noSecretKey.FindStringSubmatch(words); found != nil {
		return Obstacle{v1alpha1.ReasonSecretKeyNotFound,
			fmt.Sprintf("Secret %q has no key %q: add it, or correct %s.", found[2], found[1], fields.Secret(found[2])), true}
	}
	if found := noSecret.FindStringSubmatch(words); found != nil {
		return Obstacle{v1alpha1.ReasonSecretNotFound,
			fmt.Sprintf("Secret %q does not exist in namespace %q: create it, or correct %s.", found[1], namespace,
				fields.Secret(found[1])), true}
	}
	return Obstacle{v1alpha1.ReasonConfigNotFound, fmt.Sprintf("The container cannot be configured: %s: correct %s.",
		words, fields.Pod), true}
}

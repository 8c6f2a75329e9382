// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Fields names the fields by which a user can fix a pod.
type Fields struct {
	// Image names the fields of the image.
	Image string
	// Secret names the field that refers to a Secret.
	Secret func(name string) string
	// Claim names the field that refers to a PersistentVolumeClaim.
	Claim func(name string) string
	// Pod names the field with all other settings of the pod that a user decides.
	Pod string
}

// Waiting returns the problem that keeps a pod's container waiting; the zero value while the pod starts, and for a nil
// pod, which has not been made yet. The manager cannot read Secrets: it learns of a missing Secret or key from the
// kubelet, which reports it when it makes the container.
func Waiting(pod *corev1.Pod, container string, fields Fields) problem.Problem {
	if pod == nil {
		return problem.Problem{}
	}
	if c := unschedulable(pod); c != nil {
		return unscheduled(pod.Namespace, c.Message, fields)
	}
	if c := statusOf(pod, container); c != nil && c.State.Waiting != nil {
		if found := waiting(pod, c, fields); found.NeedsAction() {
			return found
		}
	}
	if found := initWaiting(pod, fields); found.NeedsAction() {
		return found
	}
	if c := imageMissing(pod); c != nil {
		return problem.Problem{Code: problem.ImagePullFailed, Evidence: fmt.Sprintf("%q of container %q", c.Image, c.Name),
			Field: "ors.server.image or execution.image of the RewardEnvironment, or " + fields.Image}
	}
	return serverCrashing(pod, container)
}

// Unschedulable reports whether the scheduler finds no node for a pod, and since when.
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

func waiting(pod *corev1.Pod, c *corev1.ContainerStatus, fields Fields) problem.Problem {
	switch state := c.State.Waiting; {
	case state.Reason == "CreateContainerConfigError":
		return missing(pod.Namespace, state.Message, fields)
	case state.Reason == "InvalidImageName", state.Reason == "ErrImageNeverPull",
		slices.Contains(imageFailures, state.Reason):
		return problem.Problem{Code: problem.ImagePullFailed, Evidence: strconv.Quote(imageOf(pod, c.Name)),
			Field: fields.Image}
	case state.Reason == "CreateContainerError", state.Reason == "RunContainerError":
		return problem.Problem{Code: problem.ContainerRefused, Evidence: state.Message, Field: fields.Pod}
	default:
		return problem.Problem{}
	}
}

// imageFailures are the reasons of a container that waits while its image cannot be pulled and is pulled again.
var imageFailures = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"}

// ReplaceAfter is the age at which a pod that waits for an image is replaced. The kubelet pulls the image for a new pod
// at once, and for a waiting pod after ever longer pauses, of up to five minutes.
const ReplaceAfter = 45 * time.Second

// ImageMissing reports whether a container of a pod waits for an image that could not be pulled.
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

// ReplaceIn returns the time until a pod that waits for an image is replaced; 0 or less once it is due.
func ReplaceIn(pod *corev1.Pod, now time.Time) time.Duration {
	return pod.CreationTimestamp.Add(ReplaceAfter).Sub(now)
}

// noClaim matches the scheduler's message about a PersistentVolumeClaim that does not exist.
var noClaim = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" not found`)

func unscheduled(namespace, words string, fields Fields) problem.Problem {
	if found := noClaim.FindStringSubmatch(words); found != nil {
		return problem.Problem{Code: problem.ClaimNotFound, Evidence: fmt.Sprintf("%q in namespace %q", found[1], namespace),
			Field: fields.Claim(found[1])}
	}
	return problem.Problem{Code: problem.Unschedulable, Evidence: strings.TrimRight(words, ". "), Field: fields.Pod}
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

func missing(namespace, words string, fields Fields) problem.Problem {
	if found := noSecretKey.FindStringSubmatch(words); found != nil {
		return problem.Problem{Code: problem.SecretKeyNotFound, Evidence: fmt.Sprintf("key %q of Secret %q", found[1],
			found[2]), Field: fields.Secret(found[2])}
	}
	if found := noSecret.FindStringSubmatch(words); found != nil {
		return problem.Problem{Code: problem.SecretNotFound, Evidence: fmt.Sprintf("%q in namespace %q", found[1],
			namespace), Field: fields.Secret(found[1])}
	}
	return problem.Problem{Code: problem.ConfigNotFound, Evidence: words, Field: fields.Pod}
}

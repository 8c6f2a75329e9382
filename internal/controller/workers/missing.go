// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// ReplaceAt returns the time at which a Job is replaced because none of its workers can work until a person repairs
// their API key or image; zero if a worker runs or starts. The pods of a new Job show at once whether the repair was
// made. The same Job makes its next pods after ever longer pauses, of up to ten minutes, and the kubelet waits for up
// to five minutes before it pulls an image again.
func ReplaceAt(job *batchv1.Job, pods []corev1.Pod) time.Time {
	var at time.Time
	for _, pod := range newestOf(job, pods) {
		switch {
		case podstate.ImageMissing(pod), keyRefused(pod):
			if next := pod.CreationTimestamp.Add(podstate.ReplaceAfter); next.After(at) {
				at = next
			}
		case mayWork(pod):
			return time.Time{}
		}
	}
	return at
}

// newestOf returns the newest pod of each index.
func newestOf(job *batchv1.Job, pods []corev1.Pod) map[string]*corev1.Pod {
	newest := map[string]*corev1.Pod{}
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, job) {
			continue
		}
		if other := newest[indexOf(pod)]; other == nil || other.CreationTimestamp.Before(&pod.CreationTimestamp) {
			newest[indexOf(pod)] = pod
		}
	}
	return newest
}

// keyRefused reports whether a worker ended because its API key is empty, or refused by the endpoint.
func keyRefused(pod *corev1.Pod) bool {
	ended := podstate.Termination(pod, desired.RolloutContainer)
	return ended != nil && ended.ExitCode == contract.ExitKeyRefused
}

// mayWork reports whether a worker has not ended, and nothing is known to keep it from working.
func mayWork(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || podstate.Termination(pod,
		desired.RolloutContainer) != nil {
		return false
	}
	return !podstate.Waiting(pod, desired.RolloutContainer, Fields).NeedsAction()
}

// refusedKey returns the problem of workers whose API key is empty or refused.
func refusedKey(run *v1alpha1.TrainingRun) problem.Problem {
	if named := run.Spec.Tinker.EndpointRef; named != nil {
		return problem.Problem{Code: problem.WorkersKeyRefused,
			Evidence: fmt.Sprintf("the token of the run at TinkerEndpoint %q", named.Name)}
	}
	key := ptr.Deref(run.Spec.Tinker.APIKeySecretKeyRef, ref.SecretKey{})
	return problem.Problem{Code: problem.WorkersKeyRefused,
		Evidence: fmt.Sprintf("key %q of Secret %q", key.Key, key.Name)}
}

// Fields name the fields by which a user can fix a worker's pod.
var Fields = podstate.Fields{
	Image:  "podOverrides[target=Workers].image or podOverrides[target=Workers].imagePullSecrets",
	Secret: func(string) string { return "tinker.apiKeySecretKeyRef or podOverrides[target=Workers]" },
	Claim: func(string) string {
		return "podOverrides[target=Workers].volumes, or the claimName of the RewardEnvironment's data set"
	},
	Pod: "podOverrides[target=Workers]",
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// mountDelay is the time that a pod has for its volumes before the first look at its events.
const mountDelay = 20 * time.Second

// maxMountWords bounds a message's quotation of the kubelet's words.
const maxMountWords = 512

// mounts is the problem that keeps a learner's pod from having its volumes, and the time at which it was found.
type mounts struct {
	at       time.Time
	pod      types.UID
	obstacle problem.Problem
}

// observeMounts finds the volume that a learner's pod waits for. The status of the pod does not name it.
func (o *Observer) observeMounts(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) {
	pod, now := seen.Learners[status.NewestAttempt(run)].Pod, o.Now()
	if status.AttemptEnded(run) || !mayLackVolume(pod, desired.LearnerContainer) || LearnerWaits(run, pod).NeedsAction() {
		return
	}
	if seen.LookAgain = LookInterval; now.Sub(pod.CreationTimestamp.Time) < mountDelay {
		return
	}
	known := o.mounts.Get(run)
	if known.pod != pod.UID || now.Sub(known.at) >= LookInterval {
		known = mounts{at: now, pod: pod.UID, obstacle: o.lackedVolume(ctx, run, pod, "podOverrides[target=Learner].volumes")}
		o.mounts.Set(run, known)
	}
	if known.obstacle.NeedsAction() {
		seen.LearnerObstacle = known.obstacle
	}
}

// mayLackVolume reports whether a pod is on a node that has not begun to start its containers.
func mayLackVolume(pod *corev1.Pod, container string) bool {
	if pod == nil || pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending {
		return false
	}
	_, running := podstate.Running(pod, container)
	return !running
}

// lackedVolume returns the problem of a pod that does not get a volume, with the field of the run that names the
// volume; the zero value if no event is about a volume.
func (o *Observer) lackedVolume(ctx context.Context, run *v1alpha1.TrainingRun, pod *corev1.Pod,
	field string) problem.Problem {
	words, err := refusal.OfMounts(ctx, o.Live, pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding why a pod lacks a volume")
	}
	if words == "" {
		return problem.Problem{}
	}
	words = strings.TrimRight(status.Trim(strings.Join(strings.Fields(words), " "), maxMountWords), ". ")
	return problem.Problem{Code: problem.VolumeNotMounted, Evidence: words, Field: mountField(run, words, field)}
}

// missingVolume matches the kubelet's words about a ConfigMap or Secret that does not exist.
var missingVolume = regexp.MustCompile(`(configmap|secret) "([^"]+)" not found`)

// mountField returns the field of a run that names the volume in the kubelet's words, or the argument otherwise if no
// such field is known.
func mountField(run *v1alpha1.TrainingRun, words, otherwise string) string {
	found := missingVolume.FindStringSubmatch(words)
	if found == nil {
		return otherwise
	}
	tinker := run.Spec.Tinker
	switch kind, name := found[1], found[2]; {
	case kind == "configmap" && tinker.CABundleConfigMapKeyRef != nil && tinker.CABundleConfigMapKeyRef.Name == name:
		return "tinker.caBundleConfigMapKeyRef"
	case kind == "secret" && tinker.ClientCertificateSecretRef != nil && tinker.ClientCertificateSecretRef.Name == name:
		return "tinker.clientCertificateSecretRef"
	default:
		return otherwise
	}
}

// workersLackVolume returns the problem of a worker that does not get a volume; the zero value if no event is about a
// volume. It looks at the first worker that has waited on its node for a while.
func (o *Observer) workersLackVolume(ctx context.Context, run *v1alpha1.TrainingRun,
	pending []corev1.Pod) problem.Problem {
	for i := range pending {
		pod := &pending[i]
		if !mayLackVolume(pod, desired.RolloutContainer) || o.Now().Sub(pod.CreationTimestamp.Time) < mountDelay {
			continue
		}
		return o.lackedVolume(ctx, run, pod,
			"podOverrides[target=Workers].volumes, or what the RewardEnvironment's data set names")
	}
	return problem.Problem{}
}

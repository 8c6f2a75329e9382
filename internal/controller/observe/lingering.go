// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// lingering is the pod that keeps a deleted Job from disappearing, and the time at which the pod was found.
type lingering struct {
	at  time.Time
	job types.UID
	pod string
}

// observeLingering finds a pod of a run that is being deleted and does not end, because its node does not answer: the
// pod of the newest learner, or of a worker.
func (o *Observer) observeLingering(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) {
	now := o.Now()
	if l := seen.Learners[status.NewestAttempt(run)]; l.Pod != nil && l.Job != nil && l.Job.DeletionTimestamp != nil {
		seen.Lingering = lingers([]corev1.Pod{*l.Pod}, now)
	}
	job := seen.Rollout
	if job == nil || job.DeletionTimestamp == nil || now.Sub(job.DeletionTimestamp.Time) < attempt.OverdueAfter {
		return
	}
	seen.LookAgain = LookInterval
	known := o.lingers.Get(run)
	if known.job != job.UID || now.Sub(known.at) >= LookInterval {
		known = lingering{at: now, job: job.UID, pod: lingers(o.workerPods(ctx, job), now)}
		o.lingers.Set(run, known)
	}
	seen.Lingering = cmp.Or(seen.Lingering, known.pod)
}

// lingers describes the first pod, by name, whose deletion takes longer than on a node that answers; empty if there is
// none.
func lingers(pods []corev1.Pod, now time.Time) string {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp == nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if podstate.NodeSilent(pod) || now.After(pod.DeletionTimestamp.Add(attempt.OverdueAfter)) {
			return fmt.Sprintf("pod %q on node %q", pod.Name, pod.Spec.NodeName)
		}
	}
	return ""
}

// podsOfJob returns the labels that select the pods of a Job. The labels of the Job itself might not select them:
// podOverrides[target=Workers].labels may change the labels of its pods.
func podsOfJob(job *batchv1.Job) map[string]string {
	return map[string]string{batchv1.JobNameLabel: job.Name}
}

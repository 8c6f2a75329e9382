// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/ending"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// lookInterval is the time between two looks at what keeps pods from starting that the cache does not have: the events of
// Jobs, and the pods of workers.
const lookInterval = 10 * time.Second

// lookDelay is how long a Job may take to have its pods before the first look.
const lookDelay = 3 * time.Second

// look is what keeps pods from starting, and when it was found.
type look struct {
	at      time.Time
	learner podstate.Obstacle
	workers podstate.Obstacle
}

// observeObstacles finds what keeps the learner's pod from being created, and the workers' pods from running.
func (r *Reconciler) observeObstacles(ctx context.Context, run *v1alpha1.TrainingRun, seen *observed) {
	newest := seen.learners[newestAttempt(run)]
	learner, workers := !ended(run) && lacksPod(newest), lacksWorkers(*seen)
	if !learner && !workers || finished(run) {
		return
	}
	seen.lookAgain = lookInterval
	now, known := r.Now(), r.memory.of(run).look
	if now.Sub(known.at) >= lookInterval {
		var found look
		if learner && now.Sub(newest.job.CreationTimestamp.Time) >= lookDelay {
			found.learner, found.at = r.refusedPod(ctx, newest.job, "learner's pod", "learner.pod"), now
		}
		if workers && now.Sub(seen.rollout.CreationTimestamp.Time) >= lookDelay {
			found.workers, found.at = r.workersObstacle(ctx, run, seen.rollout), now
		}
		if found.at.IsZero() {
			seen.lookAgain = lookDelay
		} else {
			r.memory.change(run, func(known *remembered) { known.look = found })
		}
		known = found
	}
	if learner {
		seen.learnerObstacle = known.learner
	}
	if workers {
		seen.workersObstacle = known.workers
	}
}

// lacksPod says that the Job of a learner should have a pod and has none.
func lacksPod(l learner) bool {
	return l.pod == nil && l.job != nil && !ending.JobEnded(l.job) && !desired.SuspendedByOther(l.job)
}

// lacksWorkers says that fewer workers are ready than there should be.
func lacksWorkers(seen observed) bool {
	job := seen.rollout
	return job != nil && job.DeletionTimestamp == nil && !ptr.Deref(job.Spec.Suspend, false) && workersReady(seen) < ptr.Deref(job.Spec.Parallelism, 1)
}

// refusedPod says why a Job's pods are refused; nothing where that is not known.
func (r *Reconciler) refusedPod(ctx context.Context, job *batchv1.Job, what, field string) podstate.Obstacle {
	refused, err := refusal.OfPods(ctx, r.Live, job)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding why pods were refused")
		return podstate.Obstacle{}
	}
	return obstacleOf(refused, what, field)
}

// workersObstacle says why workers are missing: their pods are refused, or one that exists cannot start.
func (r *Reconciler) workersObstacle(ctx context.Context, run *v1alpha1.TrainingRun, job *batchv1.Job) podstate.Obstacle {
	if job.Status.Active < ptr.Deref(job.Spec.Parallelism, 1) {
		if o := r.refusedPod(ctx, job, "workers' pods", "rollouts.pod"); o.NeedsAction {
			return o
		}
	}
	var pods corev1.PodList
	err := r.Live.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels(job.Labels),
		client.MatchingFields{"status.phase": string(corev1.PodPending)}, client.Limit(20))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing workers that have not started")
		return podstate.Obstacle{}
	}
	for i := range pods.Items {
		if o := podstate.Waiting(&pods.Items[i], desired.RolloutContainer, workerFields); o.NeedsAction {
			return o
		}
	}
	o, err := workers.RefusedVersion(ctx, r.Live, run, job)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding workers of another version")
	}
	return o
}

// workerFields are those by which a user can fix a worker's pod.
var workerFields = podstate.Fields{
	Image:  "rollouts.pod.image or rollouts.pod.imagePullSecrets",
	Secret: func(string) string { return "tinker.apiKeySecretRef or rollouts.pod" },
}

// obstacleOf gives the API server's words and the repair; the zero value of a refusal is no obstacle.
func obstacleOf(r refusal.Refusal, what, field string) podstate.Obstacle {
	switch {
	case r.Reason == "":
		return podstate.Obstacle{}
	case r.Final():
		return podstate.Obstacle{Reason: r.Reason, NeedsAction: true,
			Message: fmt.Sprintf("The API server refuses the %s as not valid (%s): correct %s.", what, r.Words, field)}
	default:
		return podstate.Obstacle{Reason: r.Reason, NeedsAction: true,
			Message: fmt.Sprintf("The API server refuses the %s (%s): correct %s, or change what refuses it; the run then continues by itself.", what, r.Words, field)}
	}
}

// refusedLearner is why the API server refused the newest attempt's Job, or what goes with it.
func refusedLearner(seen observed) podstate.Obstacle {
	return obstacleOf(seen.refused.Refusal, "learner", "learner.pod")
}

// refusedWorkers is why the API server refused the workers' Job or Service.
func refusedWorkers(seen observed) podstate.Obstacle {
	return obstacleOf(seen.refusedWorkers.Refusal, "workers", "rollouts.pod")
}

// refusedSpec blocks a run whose learner's Job is not valid, until the spec is another one. Of an attempt that ended
// earlier the condition Accepted knows the spec.
func refusedSpec(run *v1alpha1.TrainingRun, seen observed, just bool) *resolve.Problem {
	if ended := run.Status.Attempts; len(ended) == 0 || ended[0].Reason != v1alpha1.ReasonSpecRefused {
		return nil
	}
	problem := resolve.Problem{Condition: v1alpha1.ConditionAccepted, Reason: v1alpha1.ReasonSpecRefused, NeedsAction: true}
	if just {
		if seen.refused.Generation != run.Generation {
			return nil
		}
		problem.Message = refusedLearner(seen).Message
		return &problem
	}
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSpecRefused || c.ObservedGeneration != run.Generation {
		return nil
	}
	problem.Message = c.Message
	return &problem
}

// workersRefused gives RolloutsReady where Kubernetes keeps workers from existing or from starting. A manager that has
// just started has not tried to create the Job itself, so that the refusal which an earlier one found stands.
func (v view) workersRefused() (status.Condition, bool) {
	const kind = v1alpha1.ConditionRolloutsReady
	o := v.seen.workersObstacle
	if v.seen.rollout == nil {
		o = refusedWorkers(v.seen)
		c := meta.FindStatusCondition(v.run.Status.Conditions, kind)
		if o.Reason == "" && c != nil && c.ObservedGeneration == v.run.Generation &&
			(c.Reason == v1alpha1.ReasonCreateRefused || c.Reason == v1alpha1.ReasonSpecRefused) {
			return v.asBefore(kind), true
		}
	}
	return status.False(kind, o.Reason, o.Message), o.NeedsAction
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// LookInterval is the time between two looks for problems of pods that the cache does not have: the events of Jobs, and
// the pods of workers.
const LookInterval = 10 * time.Second

// lookDelay is the time that a Job has for its pods before the first look.
const lookDelay = 3 * time.Second

// observeObstacles finds the problems that keep the learner's pod from being created, and the workers' pods from
// running.
func (o *Observer) observeObstacles(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) {
	if status.RunFinished(run) {
		return
	}
	now, known := o.Now(), o.looks.Get(run)
	lasting := known.lastsOver(*seen, now)
	if lasting {
		seen.WorkersObstacle = known.workers
	}
	lacking := lackingJobs(run, *seen)
	lacking.program = o.lacksProgram(ctx, run)
	if lacking == (jobs{}) {
		return
	}
	seen.LookAgain = LookInterval
	if now.Sub(known.at) >= LookInterval {
		found := o.look(ctx, run, lacking, now)
		if lasting && found.workersJob != "" && !found.workers.NeedsAction() {
			found.workers, found.carried = known.workers, true
		}
		if found.at.IsZero() {
			seen.LookAgain = lookDelay
		} else {
			o.looks.Set(run, found)
		}
		known = found
	}
	known.report(seen, lacking)
}

// jobs are the Jobs of a run that lack pods; a Job that has its pods is nil.
type jobs struct {
	learner, workers *batchv1.Job
	// program is the Deployment of a program without a ready pod; nil if there is none.
	program *appsv1.Deployment
}

func lackingJobs(run *v1alpha1.TrainingRun, seen State) (lacking jobs) {
	if newest := seen.Learners[status.NewestAttempt(run)]; !status.AttemptEnded(run) && lacksPod(newest) {
		lacking.learner = newest.Job
	}
	if lacksWorkers(seen) {
		lacking.workers = seen.Rollout
	}
	return lacking
}

// look finds out why Jobs and the Deployment of a program lack pods. It skips objects that were created a moment ago.
func (o *Observer) look(ctx context.Context, run *v1alpha1.TrainingRun, lacking jobs, now time.Time) (found look) {
	isDue := func(job *batchv1.Job) bool { return job != nil && now.Sub(job.CreationTimestamp.Time) >= lookDelay }
	if job := lacking.learner; isDue(job) {
		found.learner = o.refusedPod(ctx, job, "learner's pod", "podOverrides[target=Learner]")
		found.at, found.learnerJob = now, job.UID
	}
	if job := lacking.workers; isDue(job) {
		found.workers, found.replaceAt = o.workersObstacle(ctx, run, job)
		found.workersJob, found.at = job.UID, now
	}
	if d := lacking.program; d != nil && now.Sub(d.CreationTimestamp.Time) >= lookDelay {
		found.program, found.programOf, found.at = o.programObstacle(ctx, d), d.UID, now
	}
	return found
}

// lacksPod reports whether the Job of a learner should have a pod and has none.
func lacksPod(l Learner) bool {
	return l.Pod == nil && l.Job != nil && !attempt.JobEnded(l.Job) && !desired.SuspendedByOther(l.Job)
}

// lacksWorkers reports whether fewer workers are ready than there should be.
func lacksWorkers(seen State) bool {
	job := seen.Rollout
	return job != nil && job.DeletionTimestamp == nil && !ptr.Deref(job.Spec.Suspend, false) &&
		seen.WorkersReady() < ptr.Deref(job.Spec.Parallelism, 1)
}

// refusedPod says why a Job's pods are refused; the zero value if unknown.
func (o *Observer) refusedPod(ctx context.Context, job *batchv1.Job, what, field string) problem.Problem {
	refused, err := refusal.OfPods(ctx, o.Live, job)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding why pods were refused")
		return problem.Problem{}
	}
	return refusal.OfObject(refused, what, field)
}

// workersObstacle returns why workers are missing, and the time at which their Job is to be replaced because of that;
// zero if it stays. Their pods are refused, or a pod cannot start, is not ready, or has ended.
func (o *Observer) workersObstacle(ctx context.Context, run *v1alpha1.TrainingRun,
	job *batchv1.Job) (problem.Problem, time.Time) {
	if job.Status.Active < ptr.Deref(job.Spec.Parallelism, 1) {
		if refused := o.refusedPod(ctx, job, "workers' pods", "podOverrides[target=Workers]"); refused.NeedsAction() {
			return refused, time.Time{}
		}
	}
	pending := o.workerPods(ctx, job, client.MatchingFields{"status.phase": string(corev1.PodPending)}, client.Limit(20))
	found := problem.Problem{}
	for i := range pending {
		if waits := podstate.Waiting(&pending[i], desired.RolloutContainer, workers.Fields); waits.NeedsAction() {
			found = waits
			break
		}
	}
	if !found.NeedsAction() {
		found = o.workersLackVolume(ctx, run, pending)
	}
	if job.Status.Failed == 0 && found.Code != problem.ImagePullFailed {
		if !found.NeedsAction() && workers.MayBeUnready(run, job, o.Now()) {
			found = workers.Unready(run, job, o.workerPods(ctx, job), o.Now())
		}
		return found, time.Time{}
	}
	pods := o.workerPods(ctx, job)
	if !found.NeedsAction() {
		found = workers.Ended(run, job, pods)
	}
	return found, workers.ReplaceAt(job, pods)
}

// workerPods lists the pods of a workers' Job.
func (o *Observer) workerPods(ctx context.Context, job *batchv1.Job, options ...client.ListOption) []corev1.Pod {
	var pods corev1.PodList
	options = append(options, client.InNamespace(job.Namespace), client.MatchingLabels(podsOfJob(job)))
	if err := o.Live.List(ctx, &pods, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing workers")
		return nil
	}
	return pods.Items
}

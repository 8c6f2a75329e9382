// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/datafiles"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// observed is what the cluster had when it was read, once; nothing later reads again. What is absent is nil.
type observed struct {
	// learners by attempt; an attempt that left nothing is not there.
	learners map[int32]learner
	// rollout is the workers' Job.
	rollout *batchv1.Job
	service *corev1.Service
	// environments that the run refers to, by name.
	environments map[string]*v1alpha1.RewardEnvironment
	// source is the run that initFrom names.
	source *v1alpha1.TrainingRun
	// heartbeat is what the newest attempt's learner replied.
	heartbeat poller.Result
	// credentials is the name of the Secret that this manager gives to learners and workers.
	credentials string
	// refused is why the API server refused the newest attempt's Job, or what goes with it, and refusedWorkers why it
	// refused the workers'; the zero value when it did not.
	refused, refusedWorkers refusal.Try
	// learnerObstacle and workersObstacle are what keeps pods from being created or from starting, besides what the
	// learner's pod shows; the zero value where nothing is known to.
	learnerObstacle, workersObstacle podstate.Obstacle
	// lookAgain is when to look again for these; 0 for never.
	lookAgain time.Duration
}

// learner is the Job and the pod of one attempt. A pod without its Job will soon be collected.
type learner struct {
	job *batchv1.Job
	pod *corev1.Pod
}

func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.TrainingRun) (observed, error) {
	seen := observed{learners: map[int32]learner{}}
	if err := r.observeJobs(ctx, run, &seen); err != nil {
		return observed{}, err
	}
	if err := r.observePods(ctx, run, &seen); err != nil {
		return observed{}, err
	}
	if err := r.confirmMissing(ctx, run, &seen); err != nil {
		return observed{}, err
	}
	var err error
	if seen.service, err = find(ctx, r.Client, run.Namespace, desired.ServiceName(run), &corev1.Service{}); err != nil {
		return observed{}, fmt.Errorf("reading service: %w", err)
	}
	if err := r.observeReferences(ctx, run, &seen); err != nil {
		return observed{}, err
	}
	seen.credentials = r.credentialsName(run)
	newest := newestAttempt(run)
	if pod := seen.learners[newest].pod; pod != nil {
		seen.heartbeat = r.Poller.Latest(pod.UID)
	}
	if refused := r.refusals.Latest(run, v1alpha1.RoleLearner); refused.Name == desired.LearnerJobName(run, newest) {
		seen.refused = refused
	}
	seen.refusedWorkers = r.refusals.Latest(run, v1alpha1.RoleRollout)
	r.observeObstacles(ctx, run, &seen)
	return seen, nil
}

func (r *Reconciler) observeJobs(ctx context.Context, run *v1alpha1.TrainingRun, seen *observed) error {
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(run.Namespace), client.MatchingLabels(desired.RunLabels(run))); err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		// A copy that somebody made has the labels, too, and perhaps the owner, but another name.
		if !metav1.IsControlledBy(job, run) {
			continue
		}
		if job.Name == desired.RolloutJobName(run) {
			seen.rollout = job
			continue
		}
		if attempt, ok := attemptOf(job); ok && job.Name == desired.LearnerJobName(run, attempt) {
			l := seen.learners[attempt]
			l.job = job
			seen.learners[attempt] = l
		}
	}
	return nil
}

func (r *Reconciler) observePods(ctx context.Context, run *v1alpha1.TrainingRun, seen *observed) error {
	labels := desired.RunLabels(run)
	labels[v1alpha1.LabelRole] = v1alpha1.RoleLearner
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(run.Namespace), client.MatchingLabels(labels)); err != nil {
		return fmt.Errorf("listing learner pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		attempt, ok := attemptOf(pod)
		owner := metav1.GetControllerOf(pod)
		if !ok || owner == nil || owner.Name != desired.LearnerJobName(run, attempt) {
			continue
		}
		l := seen.learners[attempt]
		// A Job has one pod; where there are two for a moment, the younger counts.
		if l.pod == nil || l.pod.CreationTimestamp.Before(&pod.CreationTimestamp) {
			l.pod = pod
		}
		seen.learners[attempt] = l
	}
	return nil
}

// confirmMissing asks the API server for the newest attempt's Job where the cache has none: the cache
// trails our own create, and a Job that only seems to be missing would get a second learner beside it.
func (r *Reconciler) confirmMissing(ctx context.Context, run *v1alpha1.TrainingRun, seen *observed) error {
	newest := newestAttempt(run)
	if newest == 0 || ended(run) || seen.learners[newest].job != nil {
		return nil
	}
	job, err := find(ctx, r.Live, run.Namespace, desired.LearnerJobName(run, newest), &batchv1.Job{})
	if err != nil {
		return fmt.Errorf("looking up learner job: %w", err)
	}
	l := seen.learners[newest]
	l.job = job
	if l.job != nil || l.pod != nil {
		seen.learners[newest] = l
	}
	return nil
}

func (r *Reconciler) observeReferences(ctx context.Context, run *v1alpha1.TrainingRun, seen *observed) error {
	seen.environments = map[string]*v1alpha1.RewardEnvironment{}
	for _, name := range desired.References(run) {
		env, err := find(ctx, r.Client, run.Namespace, name, &v1alpha1.RewardEnvironment{})
		if err != nil {
			return fmt.Errorf("reading environment %s: %w", name, err)
		}
		if env != nil {
			env.Default()
			if newestAttempt(run) == 0 {
				err = datafiles.MarkChanged(ctx, r.Live, env)
			}
			if err != nil {
				return err
			}
			seen.environments[name] = env
		}
	}
	if source := sourceName(run); source != "" {
		var err error
		if seen.source, err = find(ctx, r.Client, run.Namespace, source, &v1alpha1.TrainingRun{}); err != nil {
			return fmt.Errorf("reading run %s: %w", source, err)
		}
	}
	return nil
}

// find reads an object into into, and gives nil when there is none.
func find[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	return into, nil
}

func attemptOf(object client.Object) (int32, bool) {
	attempt, err := strconv.ParseInt(object.GetLabels()[v1alpha1.LabelAttempt], 10, 32)
	return int32(attempt), err == nil && attempt > 0
}

func sourceName(run *v1alpha1.TrainingRun) string {
	if run.Spec.InitFrom == nil || run.Spec.InitFrom.Run == nil {
		return ""
	}
	return run.Spec.InitFrom.Run.Name
}

// newestAttempt is the number of the newest attempt that is recorded; 0 before the first.
func newestAttempt(run *v1alpha1.TrainingRun) int32 {
	if len(run.Status.Attempts) == 0 {
		return 0
	}
	return run.Status.Attempts[0].Number
}

// ended says that no attempt is under way: none was made, or the newest is over.
func ended(run *v1alpha1.TrainingRun) bool {
	return len(run.Status.Attempts) == 0 || run.Status.Attempts[0].CompletionTime != nil
}

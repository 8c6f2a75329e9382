// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Reasons of events that are not reasons of a condition.
const (
	eventManagerKeyChanged = "ManagerKeyChanged"
	eventAPIKeyChanged     = "APIKeyChanged"
	eventTokenChanged      = "TokenChanged"
	eventSettingsChanged   = "SettingsChanged"
)

// reportRefusal is the delay after which a run is reconciled again, so that its status shows a new refusal by the API
// server.
const reportRefusal = time.Second

// apply executes a plan after its status is written. A refusal by the API server is not an error: the status reports
// it, and apply returns when to reconcile again.
func (r *Reconciler) apply(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	p plan) (time.Duration, error) {
	r.reportChanges(run, p)
	propagation := metav1.DeletePropagationBackground
	if p.foreground {
		propagation = metav1.DeletePropagationForeground
	}
	for _, object := range p.deletes {
		if err := r.delete(ctx, object, propagation); err != nil {
			return 0, fmt.Errorf("deleting %s: %w", object.GetName(), err)
		}
	}
	var again time.Duration
	if p.start > 0 {
		err := r.startAttempt(ctx, run, seen, p)
		if r.refusals.Record(run, v1alpha1.RoleLearner, desired.LearnerJobName(run, p.start), err, r.Now()) {
			again = reportRefusal
		} else if err != nil {
			return 0, err
		}
	}
	if (p.workers || p.start > 0) && (desired.HasWorkers(run) || seen.Rollout != nil) {
		wait, err := r.reconcileWorkers(ctx, run, seen, p)
		if err != nil {
			return 0, err
		}
		again = sooner(again, wait)
	} else if _, err := r.reconcileServers(ctx, run, seen, p, p.servers); err != nil {
		return 0, err
	}
	if p.start > 2 {
		return again, r.pruneFiles(ctx, run, seen, p.start)
	}
	if p.expire {
		return again, r.expire(ctx, run)
	}
	return again, nil
}

// reportChanges records the events that say why a learner is stopped for the next attempt.
func (r *Reconciler) reportChanges(run *v1alpha1.TrainingRun, p plan) {
	if p.credentialsChanged {
		record.Events(r.Recorder, run, record.Warning(eventManagerKeyChanged, "Restart",
			"The manager's key has changed: the learner is stopped at a saved state, and the next attempt has new credentials."))
	}
	if p.keyChanged != "" {
		reason := eventAPIKeyChanged
		if p.keyChanged == desired.FieldTokenizerToken {
			reason = eventTokenChanged
		}
		record.Events(r.Recorder, run, record.Warning(reason, "Restart",
			p.keyChanged+" has changed: the learner is stopped at a saved state, and the next attempt has the other key."))
	}
	if p.settingsChanged {
		record.Events(r.Recorder, run, record.Normal(eventSettingsChanged, "Restart",
			"What decides the weights was changed before a first step was committed: the learner is stopped, and the next "+
				"attempt starts with it."))
	}
}

// reconcileWorkers brings the shared environment servers of a run, and then the workers' Service and Job, in line with
// the spec. If the API server has just refused one of these objects, it returns how long to wait instead.
func (r *Reconciler) reconcileWorkers(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	p plan) (time.Duration, error) {
	if wait, again := seen.RefusedWorkers.Wait(run.Generation, r.Now()); wait > 0 || !again {
		return wait, nil
	}
	reconciler := workers.Reconciler{Client: r.Client, Settings: r.Settings, Delete: r.delete,
		Place: func(ctx context.Context, template *corev1.PodTemplateSpec) error {
			return r.place(ctx, seen, kueue.WorkersSet, template)
		}}
	run = admittedRun(run, seen)
	observed := workersOf(run, seen, p.pins)
	if p.file != nil {
		observed.SpecDigest = p.file.SpecDigest
	}
	replaced, err := r.reconcileServers(ctx, run, seen, p, workers.RunServers)
	observed.AwaitsServers = !replaced
	if err == nil {
		err = reconciler.Reconcile(ctx, run, observed, r.Now())
	}
	if r.refusals.Record(run, v1alpha1.RoleRollout, desired.RolloutJobName(run), err, r.Now()) {
		return reportRefusal, nil
	}
	return 0, err
}

// reconcileServers runs or ends the shared environment servers of a run, and reports whether none of them is being
// replaced.
func (r *Reconciler) reconcileServers(
	ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State, p plan, action workers.ServersAction,
) (bool, error) {
	reconciler := workers.ServersReconciler{Client: r.Client, Settings: r.Settings, ManagerKey: r.ManagerKey,
		Pools: r.pools(),
		Place: func(ctx context.Context, d *appsv1.Deployment) error {
			return r.place(ctx, seen, kueue.SetOf(d), &d.Spec.Template)
		}}
	return reconciler.Reconcile(ctx, run, action, workersOf(run, seen, p.pins).Servers)
}

// workersOf returns the state that decides about the workers. pins are the pins of an attempt that starts; nil if none
// does.
func workersOf(run *v1alpha1.TrainingRun, seen observe.State, pins desired.Pins) workers.Observed {
	o := workers.Observed{
		Attempt: status.NewestAttempt(run), Job: seen.Rollout, Service: seen.Service, Credentials: seen.Credentials,
		VersionRefused: seen.WorkersObstacle.Code == problem.VersionRefused ||
			seen.WorkersObstacle.Code == problem.ImageOfOtherVersion,
		ReplaceAt:   seen.WorkersReplaceAt,
		KeyReplaced: keyReplaced(run, seen.Rollout),
	}
	learner := seen.Learners[o.Attempt].Job
	if !status.AttemptEnded(run) {
		o.Learner = learner
	}
	if learner != nil {
		o.SpecDigest = learner.Annotations[v1alpha1.AnnotationSpecDigest]
	}
	if pins != nil {
		o.Data, o.Servers = pins.Data(), pins.Servers()
	} else if given := cmp.Or(learner, o.Job); given != nil {
		o.Data, o.Servers = desired.DataOf(given), desired.ServersOf(given)
	}
	return o
}

// keyReplaced reports whether the workers began before the API key in its Secret was replaced. Two attempts show this:
// the endpoint refused the previous attempt's key, and the newest attempt, which began after the workers, has loaded a
// state with another key.
func keyReplaced(run *v1alpha1.TrainingRun, rollout *batchv1.Job) bool {
	attempts := run.Status.Attempts
	if rollout == nil || len(attempts) < 2 || attempts[0].FromStep == nil {
		return false
	}
	began := rollout.Annotations[v1alpha1.AnnotationRunFile] == desired.RunFileName(run, attempts[0].Number)
	return attempts[1].Reason == string(problem.KeyRefused) && !began
}

// credentialsChanged reports whether the newest attempt's learner has credentials that derive from another manager key:
// this manager can neither reach it nor be reached by it.
func credentialsChanged(run *v1alpha1.TrainingRun, seen observe.State) bool {
	job := seen.Learners[status.NewestAttempt(run)].Job
	if job == nil {
		return false
	}
	given := desired.CredentialsOf(job)
	return given != "" && !desired.SameManagerKey(given, seen.Credentials)
}

// delete deletes the very object that was seen, and its pods with it; that it no longer exists is fine.
func (r *Reconciler) delete(ctx context.Context, object client.Object, propagation metav1.DeletionPropagation) error {
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())},
		client.PropagationPolicy(propagation))
	if apierrors.IsConflict(err) {
		return nil // Another object has the name by now.
	}
	return client.IgnoreNotFound(err)
}

// expire deletes a finished run whose time to live is over, unless a fresh read shows that the run has changed.
func (r *Reconciler) expire(ctx context.Context, run *v1alpha1.TrainingRun) error {
	now, err := observe.Find(ctx, r.Live, run.Namespace, run.Name, &v1alpha1.TrainingRun{})
	if err != nil {
		return fmt.Errorf("looking up run: %w", err)
	}
	if now == nil || now.UID != run.UID || now.Spec.TTLSecondsAfterFinished == nil || now.Status.CompletionTime == nil {
		return nil
	}
	if goesOn(now) {
		return nil
	}
	if left := now.Status.CompletionTime.Add(seconds(*now.Spec.TTLSecondsAfterFinished)).Sub(r.Now()); left > 0 {
		return nil
	}
	err = r.Client.Delete(ctx, now,
		client.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting finished run: %w", err)
	}
	return nil
}

// targets returns the learners to which heartbeat requests are sent. Learners of earlier attempts are among them: the
// request shows them that there is a newer attempt.
func targets(run *v1alpha1.TrainingRun, seen observe.State, want contract.Desired) []poller.Target {
	newest := status.NewestAttempt(run)
	var all []poller.Target
	for _, attempt := range slices.Sorted(maps.Keys(seen.Learners)) {
		pod := seen.Learners[attempt].Pod
		if _, running := learnerRunning(pod); !running || pod.Status.PodIP == "" {
			continue
		}
		job := seen.Learners[attempt].Job
		all = append(all, poller.Target{
			Pod: pod.UID,
			// If the Job no longer exists, a manager of this version is assumed to have made it.
			WorkerToken: job != nil && !desired.HasManagerToken(job),
			Address:     net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(desired.HeartbeatPort)),
			Request:     contract.HeartbeatRequest{RunUID: string(run.UID), Attempt: newest, Desired: want},
		})
	}
	return all
}

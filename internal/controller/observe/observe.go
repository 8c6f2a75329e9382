// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe reads the state of a TrainingRun in the cluster, once for each reconcile: its objects, and the run
// files of earlier attempts with the changes of the spec since. It decides nothing.
package observe

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/datafiles"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/controller/warmpool"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// State is the state of a run in the cluster, read once; later code does not read it again. Absent objects are nil.
type State struct {
	// Learners are the learners of the attempts, by number; an attempt without Job and pod is missing.
	Learners map[int32]Learner
	// Rollout is the workers' Job.
	Rollout *batchv1.Job
	Service *corev1.Service
	// Environments are the environments that the run refers to, by name.
	Environments map[string]*v1alpha1.RewardEnvironment
	// Source is the run that initFrom names.
	Source *v1alpha1.TrainingRun
	// Cycle names the runs that wait for each other by initFrom, this run first and last; empty if there is no cycle.
	Cycle string
	// Endpoint is the use that the run may make of the TinkerEndpoint that it names.
	Endpoint endpoint.Use
	// Heartbeat is the reply of the newest attempt's learner.
	Heartbeat poller.Result
	// Findings are reasons why the policy does not learn; Diagnosed is false while nothing is known. The Reconciler sets
	// both.
	Findings  []diagnosis.Finding
	Diagnosed bool
	// Queue is Kueue's state of the run; the Reconciler sets it.
	Queue kueue.State
	// Credentials is the name of the Secret that this manager gives to learners and workers; its Reconciler sets it.
	Credentials string
	// Refused is the API server's refusal of the newest attempt's Job or of an object that belongs to it, and
	// RefusedWorkers its refusal of the workers' Job; the zero value if there is none.
	Refused, RefusedWorkers refusal.Try
	// LearnerObstacle and WorkersObstacle are the problems that keep pods from being created or from starting, or workers
	// from being ready, apart from problems that the learner's pod shows; the zero value if there are none.
	LearnerObstacle, WorkersObstacle problem.Problem
	// ProgramsObstacle is the problem of a program that runs in separate pods: no pod is ready, or its pods cannot start.
	// It is the zero value if there is no problem.
	ProgramsObstacle problem.Problem
	// WorkersReplaceAt is the time at which the workers' Job is replaced because none of its workers can work:
	// workers.ReplaceAt.
	WorkersReplaceAt time.Time
	// Lingering describes a pod that is being deleted and does not end; empty if there is none.
	Lingering string
	// LookAgain is the time until the next look for these problems; 0 if none is needed.
	LookAgain time.Duration
}

// Learner is the Job and the pod of one attempt. A pod without its Job will soon be collected.
type Learner struct {
	Job *batchv1.Job
	Pod *corev1.Pod
	// Replaced says that the pod has taken the place of another pod of the Job that has run and still exists.
	Replaced bool
}

// WorkersActive returns the number of worker pods that have not ended.
func (s State) WorkersActive() int32 {
	if s.Rollout == nil {
		return 0
	}
	return s.Rollout.Status.Active
}

// WorkersReady returns the number of ready worker pods.
func (s State) WorkersReady() int32 {
	if s.Rollout == nil {
		return 0
	}
	return ptr.Deref(s.Rollout.Status.Ready, 0)
}

// Add adds a pod of the attempt's Job. A Job has one pod; if there are two, as after its suspension, the younger
// counts.
func (l *Learner) Add(pod *corev1.Pod) {
	younger, older := pod, l.Pod
	if older != nil && pod.CreationTimestamp.Before(&older.CreationTimestamp) {
		younger, older = older, pod
	}
	if older != nil && hasRun(older) {
		l.Replaced = true
	}
	l.Pod = younger
}

// hasRun reports whether a learner's container runs or ran.
func hasRun(pod *corev1.Pod) bool {
	_, running := podstate.Running(pod, desired.LearnerContainer)
	return running || podstate.Termination(pod, desired.LearnerContainer) != nil
}

// Observer observes runs. New makes one.
type Observer struct {
	// Client reads from the cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Endpoints reads TinkerEndpoints; nil for a manager that serves none.
	Endpoints client.Reader
	// Fixed are the labels by which budgets of TinkerEndpoints may select runs.
	Fixed endpoint.FixedLabels
	// Namespace is the manager's namespace. The brokers that it runs are there.
	Namespace string
	Poller    *poller.Poller
	Refusals  *refusal.Memory
	Now       func() time.Time
	// Deployments says that Client has the Deployments of runs.
	Deployments bool
	// Pools have the claims of runs; nil if the manager may not make claims.
	Pools *warmpool.Link

	// looks has the newest look at each run. If it is lost, each run is looked at once more.
	looks *objectmap.Map[look]
	// lingers has the newest look at pods that are being deleted. If it is lost, they are looked at once more.
	lingers *objectmap.Map[lingering]
	// mounts has the newest look at the volumes of a learner's pod that does not start. If it is lost, the pod is looked
	// at once more.
	mounts *objectmap.Map[mounts]
	labels *namespaceLabels
	prices *endpointPrices
}

// New completes an Observer.
func New(o Observer) *Observer {
	o.looks, o.lingers, o.mounts = &objectmap.Map[look]{}, &objectmap.Map[lingering]{}, &objectmap.Map[mounts]{}
	o.labels, o.prices = &namespaceLabels{}, &endpointPrices{}
	return &o
}

// Forget drops the state of a run that no longer exists.
func (o *Observer) Forget(run types.NamespacedName) {
	o.looks.Forget(run)
	o.lingers.Forget(run)
	o.mounts.Forget(run)
}

// Run observes a run.
func (o *Observer) Run(ctx context.Context, run *v1alpha1.TrainingRun) (State, error) {
	seen := State{Learners: map[int32]Learner{}}
	if err := o.observeJobs(ctx, run, &seen); err != nil {
		return State{}, err
	}
	if err := observePods(ctx, o.Client, run, &seen); err != nil {
		return State{}, err
	}
	if err := o.confirmMissing(ctx, run, &seen); err != nil {
		return State{}, err
	}
	var err error
	if seen.Service, err = Find(ctx, o.Client, run.Namespace, desired.ServiceName(run), &corev1.Service{}); err != nil {
		return State{}, fmt.Errorf("reading service: %w", err)
	}
	if err := o.observeReferences(ctx, run, &seen); err != nil {
		return State{}, err
	}
	if err := o.observeEndpoint(ctx, run, &seen); err != nil {
		return State{}, err
	}
	newest := status.NewestAttempt(run)
	if pod := seen.Learners[newest].Pod; pod != nil {
		seen.Heartbeat = o.Poller.Latest(pod.UID)
	}
	if refused := o.Refusals.Latest(run, v1alpha1.RoleLearner); refused.Name == desired.LearnerJobName(run, newest) {
		seen.Refused = refused
	}
	seen.RefusedWorkers = o.Refusals.Latest(run, v1alpha1.RoleRollout)
	o.observeObstacles(ctx, run, &seen)
	o.observeClaims(ctx, run, &seen)
	o.observeMounts(ctx, run, &seen)
	o.observeLingering(ctx, run, &seen)
	return seen, nil
}

func (o *Observer) observeJobs(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) error {
	var jobs batchv1.JobList
	if err := o.Client.List(ctx, &jobs, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.RunLabels(run))); err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		// A copy that a person made also has the labels, and perhaps the owner, but another name.
		if !metav1.IsControlledBy(job, run) {
			continue
		}
		if job.Name == desired.RolloutJobName(run) {
			seen.Rollout = job
			continue
		}
		if attempt, ok := attemptOf(job); ok && job.Name == desired.LearnerJobName(run, attempt) {
			l := seen.Learners[attempt]
			l.Job = job
			seen.Learners[attempt] = l
		}
	}
	return nil
}

func observePods(ctx context.Context, reader client.Reader, run *v1alpha1.TrainingRun, seen *State) error {
	labels := desired.RunLabels(run)
	labels[v1alpha1.LabelRole] = v1alpha1.RoleLearner
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, client.InNamespace(run.Namespace), client.MatchingLabels(labels)); err != nil {
		return fmt.Errorf("listing learner pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		attempt, ok := attemptOf(pod)
		owner := metav1.GetControllerOf(pod)
		if !ok || owner == nil || owner.Name != desired.LearnerJobName(run, attempt) {
			continue
		}
		l := seen.Learners[attempt]
		l.Add(pod)
		seen.Learners[attempt] = l
	}
	return nil
}

// confirmMissing asks the API server for the newest attempt's Job if the cache has none: the cache trails the manager's
// own writes, and a Job that only seems to be missing would lead to a second learner.
func (o *Observer) confirmMissing(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) error {
	newest := status.NewestAttempt(run)
	if newest == 0 || status.AttemptEnded(run) || seen.Learners[newest].Job != nil {
		return nil
	}
	job, err := Find(ctx, o.Live, run.Namespace, desired.LearnerJobName(run, newest), &batchv1.Job{})
	if err != nil {
		return fmt.Errorf("looking up learner job: %w", err)
	}
	l := seen.Learners[newest]
	l.Job = job
	if l.Job != nil || l.Pod != nil {
		seen.Learners[newest] = l
	}
	return nil
}

// Confirm reads the learner of the newest attempt from the API server, since the cache may be old.
func (o *Observer) Confirm(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) error {
	newest := status.NewestAttempt(run)
	delete(seen.Learners, newest)
	if err := observePods(ctx, o.Live, run, seen); err != nil {
		return err
	}
	if err := o.confirmMissing(ctx, run, seen); err != nil {
		return err
	}
	seen.Heartbeat = poller.Result{}
	if pod := seen.Learners[newest].Pod; pod != nil {
		seen.Heartbeat = o.Poller.Latest(pod.UID)
	}
	return nil
}

func (o *Observer) observeReferences(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) error {
	seen.Environments = map[string]*v1alpha1.RewardEnvironment{}
	for _, name := range desired.References(run) {
		env, err := Find(ctx, o.Client, run.Namespace, name, &v1alpha1.RewardEnvironment{})
		if err != nil {
			return fmt.Errorf("reading environment %s: %w", name, err)
		}
		if env != nil {
			if status.NewestAttempt(run) == 0 {
				err = datafiles.MarkChanged(ctx, o.Live, env)
			}
			if err != nil {
				return err
			}
			seen.Environments[name] = env
		}
	}
	if source := SourceName(run); source != "" {
		var err error
		if seen.Source, err = Find(ctx, o.Client, run.Namespace, source, &v1alpha1.TrainingRun{}); err != nil {
			return fmt.Errorf("reading run %s: %w", source, err)
		}
	}
	if run.Status.StartTime == nil && seen.Source != nil {
		var err error
		if seen.Cycle, err = o.cycle(ctx, run, seen.Source); err != nil {
			return err
		}
	}
	return nil
}

// longestChain bounds the number of runs that cycle follows.
const longestChain = 64

// cycle follows the runs that initFrom names, from a source on. It returns their names if they lead back to the run;
// empty if they do not.
func (o *Observer) cycle(ctx context.Context, run, source *v1alpha1.TrainingRun) (string, error) {
	names := []string{run.Name}
	for next := source; next != nil && len(names) < longestChain; {
		names = append(names, next.Name)
		name := SourceName(next)
		switch {
		case next.Name == run.Name:
			return strings.Join(names, ", "), nil
		case name == "" || len(next.Status.Checkpoints) > 0:
			return "", nil
		}
		var err error
		if next, err = Find(ctx, o.Client, run.Namespace, name, &v1alpha1.TrainingRun{}); err != nil {
			return "", fmt.Errorf("reading run %s: %w", name, err)
		}
	}
	return "", nil
}

// Find reads an object into into, and returns nil if it does not exist.
func Find[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, into T) (T, error) {
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

// SourceName is the run that initFrom names; "" if it names none.
func SourceName(run *v1alpha1.TrainingRun) string {
	if run.Spec.InitFrom == nil || run.Spec.InitFrom.RunRef == nil {
		return ""
	}
	return run.Spec.InitFrom.RunRef.Name
}

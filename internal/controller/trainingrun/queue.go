// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads/status,verbs=patch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=resourceflavors;workloadpriorityclasses,verbs=get
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=get

// stops reports whether a run is to stop at a saved state: its user or its budget suspends it, or Kueue does.
func stops(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) bool {
	return suspended(run, seen, now) || seen.Queue.Stops()
}

// idle reports whether a run has no pods, and no Job that could make one.
func idle(seen observe.State) bool {
	if seen.Rollout != nil {
		return false
	}
	for _, l := range seen.Learners {
		switch {
		case l.Pod != nil && podstate.Termination(l.Pod, desired.LearnerContainer) == nil &&
			l.Pod.Status.Phase != corev1.PodFailed && l.Pod.Status.Phase != corev1.PodSucceeded:
			return false
		case l.Pod == nil && l.Job != nil && l.Job.Status.Active > 0:
			return false
		}
	}
	return true
}

// observeQueue sets Kueue's state of the run, and the pods that a run in progress needs.
func (r *Reconciler) observeQueue(ctx context.Context, run *v1alpha1.TrainingRun, seen *observe.State) error {
	var err error
	if seen.Queue, err = r.Kueue.Observe(ctx, run); err != nil || !seen.Queue.Managed {
		return err
	}
	seen.Queue.Refused = r.refusals.Latest(run, roleWorkload).Evidence
	if seen.Learners[status.NewestAttempt(run)].Job == nil && seen.Rollout == nil {
		return nil // An attempt that is due says which pods it needs.
	}
	of := workersOf(run, *seen, nil)
	sets, err := kueue.PodSets(run, of.Data, of.Servers, r.Settings)
	if err != nil {
		return err
	}
	seen.Queue = seen.Queue.With(run, sets)
	return nil
}

// withQueue holds an attempt that is due until Kueue has admitted its pods, and decides the action on the run's
// Workload.
func (r *Reconciler) withQueue(ctx context.Context, run *v1alpha1.TrainingRun, seen *observe.State,
	p plan) (plan, error) {
	if !seen.Queue.Managed && seen.Queue.Workload == nil {
		return p, nil
	}
	due := p.start > 0
	if due && seen.Queue.Managed {
		sets, err := kueue.PodSets(run, p.pins.Data(), p.pins.Servers(), r.Settings)
		if err != nil {
			return p, err
		}
		seen.Queue = seen.Queue.With(run, sets)
		if seen.Queue.Stops() {
			p.start, p.file, p.queued, p.workers, p.requeue = 0, nil, true, false, 0
		}
		switch {
		case p.queued && !idle(*seen):
			p = p.withSuspension(run, *seen)
		case !p.queued:
			if err := r.Kueue.CheckPlaces(ctx, seen.Queue); err != nil {
				p = p.withBlock(unplaced(err), 0)
			}
		}
	}
	p.queue = seen.Queue.Decide(kueue.Facts{
		Finished: status.RunFinished(run) && p.next == nil || p.final != nil, Suspended: suspended(run, *seen, r.Now()),
		Idle: idle(*seen), Due: due,
	})
	if p.queue != kueue.Create {
		return p, nil
	}
	var err error
	p.priority, err = r.Kueue.Priority(ctx, run, seen.Queue)
	if isUnreadable(err) {
		p.queue, p.queued = kueue.Keep, false
		return p.withBlock(noPriorityClass(kueue.PriorityClassOf(run, seen.Queue.Sets), err), 0), nil
	}
	return p, err
}

// isUnreadable reports whether an object does not exist, or may not be read.
func isUnreadable(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// unplaced is the problem of a run whose pods cannot be placed as Kueue has admitted them.
func unplaced(err error) *problem.Problem {
	return &problem.Problem{Code: problem.NotPlaced, Evidence: err.Error()}
}

// noPriorityClass is the problem of a run whose priority class does not exist, or may not be read.
func noPriorityClass(class kueue.PriorityClassRef, err error) *problem.Problem {
	p := &problem.Problem{Code: problem.PriorityClassNotFound,
		Evidence: fmt.Sprintf("%s %q does not exist", class.Kind, class.Name)}
	if apierrors.IsForbidden(err) {
		p.Evidence = err.Error()
	}
	if class.Group != kueue.Group {
		p.Field = "priorityClassName of spec.podOverrides"
	}
	return p
}

// roleWorkload is the role under which the refusal of a run's Workload is remembered.
const roleWorkload = "workload"

// createWorkload makes the Workload of a run, unless it was refused a moment ago. A refusal is not an error: the status
// reports it, and createWorkload returns when to reconcile again.
func (r *Reconciler) createWorkload(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	p plan) (time.Duration, error) {
	if wait, again := r.refusals.Latest(run, roleWorkload).Wait(run.Generation, r.Now()); wait > 0 || !again {
		return wait, nil
	}
	err := r.Kueue.Create(ctx, run, seen.Queue, p.priority)
	if r.refusals.Record(run, roleWorkload, kueue.Name(run), err, r.Now()) {
		return reportRefusal, nil
	}
	return 0, err
}

// tellQueue executes the action on the Workload of a run whose status is written, and notes in the Workload whether the
// pods of the run are ready. It returns when to reconcile the run again; 0 for never.
func (r *Reconciler) tellQueue(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	p plan) (time.Duration, error) {
	if !seen.Queue.Managed && seen.Queue.Workload == nil {
		return 0, nil
	}
	end := kueue.Ending{Succeeded: status.IsTrue(run.Status.Conditions, v1alpha1.ConditionComplete)}
	for _, c := range run.Status.Conditions {
		if c.Status == metav1.ConditionTrue && (c.Type == v1alpha1.ConditionComplete || c.Type == v1alpha1.ConditionFailed) {
			end.Message = c.Message
		}
	}
	if p.queue == kueue.Create {
		return r.createWorkload(ctx, run, seen, p)
	}
	if err := r.Kueue.Do(ctx, run, seen.Queue, p.queue, end); err != nil {
		return 0, err
	}
	if p.queue != kueue.Keep || status.RunFinished(run) {
		return 0, nil
	}
	return 0, r.Kueue.SetReady(ctx, seen.Queue, status.IsTrue(run.Status.Conditions, v1alpha1.ConditionPodsReady))
}

// place adds the placement of Kueue's admission to the pods of a set.
func (r *Reconciler) place(ctx context.Context, seen observe.State, set string,
	template *corev1.PodTemplateSpec) error {
	if err := r.Kueue.Place(ctx, seen.Queue, set, template); err != nil {
		return fmt.Errorf("placing pods: %w", err)
	}
	return nil
}

// admittedRun is the run with as many workers as Kueue has admitted.
func admittedRun(run *v1alpha1.TrainingRun, seen observe.State) *v1alpha1.TrainingRun {
	workers := seen.Queue.Workers(run)
	if workers == *run.Spec.Rollouts.Workers {
		return run
	}
	run = run.DeepCopy()
	run.Spec.Rollouts.Workers = &workers
	return run
}

// queueStatus is the place of a run in Kueue.
func queueStatus(run *v1alpha1.TrainingRun, seen observe.State) *v1alpha1.QueueStatus {
	if !seen.Queue.Managed && seen.Queue.Workload == nil {
		return nil
	}
	return &v1alpha1.QueueStatus{Name: kueue.Queue(run), Workload: kueue.Name(run)}
}

// queued reports whether the run has to wait for Kueue, or to stop for it.
func (v view) queued() bool {
	return !v.finished() && (v.plan.queued || v.seen.Queue.Stops() && v.plan.start == 0)
}

// awaitsAdmission reports whether a run without an attempt in progress waits for Kueue.
func (v view) awaitsAdmission() bool {
	attempt := v.attempt()
	return v.queued() && (attempt == nil || attempt.CompletionTime != nil)
}

// queueStall says whether a run that waits for Kueue requires intervention.
func (v view) queueStall() status.Condition {
	if p := v.seen.Queue.Why(); p.NeedsAction() {
		return status.Show(v1alpha1.ConditionStalled, metav1.ConditionTrue, p)
	}
	return status.False(v1alpha1.ConditionStalled, v1alpha1.ReasonAsExpected, "No intervention is required.")
}

// queueCondition is a condition of a run that waits for Kueue.
func (v view) queueCondition(kind string) status.Condition {
	p := v.seen.Queue.Why()
	if queue := kueue.Queue(v.run); v.plan.queued || idle(v.seen) {
		p.Evidence = "queue " + queue + ": " + p.Evidence
	}
	return not(kind, p)
}

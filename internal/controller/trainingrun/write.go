// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
)

// writeStatus writes a status if the write is due, under the resource version from which the status was computed, and
// gives run the new status. If the write is not due, it returns how long the write can wait. pod is the newest
// learner's pod; nil if there is none.
func (r *Reconciler) writeStatus(ctx context.Context, run *v1alpha1.TrainingRun, pod *corev1.Pod,
	next v1alpha1.TrainingRunStatus) (time.Duration, error) {
	now := r.Now()
	since, _ := learnerRunning(pod)
	due, wait := record.Due(&run.Status, &next, r.memory.wrote(run), now, record.PaceFor(run, since, now))
	if !due {
		return wait, nil
	}
	before := run.DeepCopy()
	run.Status = next
	if err := record.Status(ctx, r.Client, before, run); err != nil {
		return 0, err
	}
	r.memory.written(before, run, now)
	record.Events(r.Recorder, run, record.EventsOfRun(*run.Spec.Checkpoints.EverySteps, &before.Status, &run.Status)...)
	logState(ctrl.LoggerFrom(ctx), before, run)
	return 0, nil
}

// logState logs a change of a run's state on one line, which outlives events and the run.
func logState(logger logr.Logger, before, run *v1alpha1.TrainingRun) {
	status := &run.Status
	if status.State == before.Status.State {
		return
	}
	values := []any{"uid", run.UID, "from", before.Status.State, "to", status.State, "step", ptr.Deref(status.Step, 0)}
	for _, kind := range []string{v1alpha1.ConditionFailed, v1alpha1.ConditionComplete, v1alpha1.ConditionSuspended,
		v1alpha1.ConditionProgressing, v1alpha1.ConditionAccepted} {
		if c := meta.FindStatusCondition(status.Conditions, kind); c != nil &&
			(c.Status == metav1.ConditionTrue || kind == v1alpha1.ConditionProgressing || kind == v1alpha1.ConditionAccepted) {
			values = append(values, "condition", kind, "reason", c.Reason, "message", c.Message)
			break
		}
	}
	if p := status.Usage; p != nil && p.EstimatedUSD != nil {
		values = append(values, "usd", *p.EstimatedUSD)
	}
	logger.Info("the state of a run has changed", values...)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
)

// writeStatus writes a status if it is due, under the resource version that it was computed from, and says
// how long one that is not can wait. run then has the status that was written. pod is the newest learner's.
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
	return 0, nil
}

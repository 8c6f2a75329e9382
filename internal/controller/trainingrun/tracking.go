// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// setTracking sets TrackingReady for a run that has services to track it. While no learner answers, it stays as it is.
func setTracking(next *v1alpha1.TrainingRunStatus, v view) {
	const kind = v1alpha1.ConditionTrackingReady
	c := status.Unknown(kind, v1alpha1.ReasonNotStarted, "No learner has connected to the services of spec.tracking.")
	if reply := v.reply(); reply != nil {
		c = status.Tracking(reply.Tracking)
	} else if meta.FindStatusCondition(next.Conditions, kind) != nil {
		c = v.asBefore(kind)
	}
	if v.run.Spec.Tracking == nil {
		meta.RemoveStatusCondition(&next.Conditions, kind)
		return
	}
	status.Set(&next.Conditions, v.run.Generation, v.now, c)
}

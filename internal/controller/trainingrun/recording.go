// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// setRecording sets Recording for a run that has artifacts or services to track it. While no learner answers, it stays
// as it is.
func setRecording(next *v1alpha1.TrainingRunStatus, v view) {
	const kind = v1alpha1.ConditionRecording
	if v.run.Spec.Tracking == nil && v.run.Spec.Artifacts == nil {
		meta.RemoveStatusCondition(&next.Conditions, kind)
		return
	}
	c := status.Unknown(kind, v1alpha1.ReasonNotStarted, "No learner has written anything yet.")
	if reply := v.reply(); reply != nil {
		c = recordingOf(*reply)
	} else if meta.FindStatusCondition(next.Conditions, kind) != nil {
		c = v.asBefore(kind)
	}
	status.Set(&next.Conditions, &next.Codes, v.run.Generation, v.now, c)
}

// recordingOf returns the condition Recording: whether the artifact store and the services accept a run's records. A
// run waits for its store, but never for a service.
func recordingOf(reply contract.HeartbeatReply) status.Condition {
	blocked := slices.IndexFunc(reply.Problems, func(p problem.Problem) bool {
		return p.Reason() == v1alpha1.ReasonArtifactsBlocked
	})
	if blocked >= 0 {
		return not(v1alpha1.ConditionRecording, endpoint.Trimmed(reply.Problems[blocked]))
	}
	return status.Tracking(reply.Tracking)
}

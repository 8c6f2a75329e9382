// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// refusedLearner is why the API server refused the newest attempt's Job, or what goes with it.
func refusedLearner(seen observe.State) podstate.Obstacle {
	return observe.ObstacleOf(seen.Refused.Refusal, "learner", "podOverrides[target=Learner]")
}

// refusedWorkers is why the API server refused the workers' Job or Service.
func refusedWorkers(seen observe.State) podstate.Obstacle {
	return observe.ObstacleOf(seen.RefusedWorkers.Refusal, "workers", "podOverrides[target=Workers]")
}

// refusals are the reasons of attempts that wait for another spec.
var refusals = []string{v1alpha1.ReasonSpecRefused, v1alpha1.ReasonSettingsDiffer, v1alpha1.ReasonResumeRefused}

// refusedSpec blocks a run whose learner's Job is not valid, or whose learner found a step that was committed with
// other settings or cannot continue the run of spec.resumeFrom, until the spec is another one. Of an attempt that ended
// earlier the condition Accepted knows the spec.
func refusedSpec(run *v1alpha1.TrainingRun, seen observe.State, just bool) *resolve.Problem {
	ended := run.Status.Attempts
	if len(ended) == 0 || !slices.Contains(refusals, ended[0].Reason) {
		return nil
	}
	problem := resolve.Problem{Condition: v1alpha1.ConditionAccepted, Reason: ended[0].Reason, NeedsAction: true}
	c := ptr.Deref(meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionAccepted), metav1.Condition{})
	switch {
	case just && problem.Reason != v1alpha1.ReasonSpecRefused && !settingsChanged(run, seen):
		problem.Message = ended[0].Message
	case just && problem.Reason == v1alpha1.ReasonSpecRefused && seen.Refused.Generation == run.Generation:
		problem.Message = refusedLearner(seen).Message
	case !just && c.Status == metav1.ConditionFalse && c.Reason == problem.Reason &&
		c.ObservedGeneration == run.Generation:
		problem.Message = c.Message
	default:
		return nil // The spec has changed since.
	}
	return &problem
}

// workersRefused gives PodsReady where Kubernetes keeps workers from existing or from starting. A manager that has
// just started has not tried to create the Job itself, so that the refusal which an earlier one found stands.
func (v view) workersRefused() (status.Condition, bool) {
	const kind = v1alpha1.ConditionPodsReady
	o := v.seen.WorkersObstacle
	if o.Reason == v1alpha1.ReasonWorkersMissing && !v.learnerServes() {
		o = podstate.Obstacle{} // They are not ready as they have no learner.
	}
	if created := refusedWorkers(v.seen); v.seen.Rollout == nil && (created.Reason != "" || !o.NeedsAction) {
		o = created
		c := meta.FindStatusCondition(v.run.Status.Conditions, kind)
		if o.Reason == "" && v.answeredBefore() && c != nil && c.ObservedGeneration == v.run.Generation &&
			(c.Reason == v1alpha1.ReasonCreateRefused || c.Reason == v1alpha1.ReasonSpecRefused) {
			return v.asBefore(kind), true
		}
	}
	return status.False(kind, o.Reason, o.Message), o.NeedsAction
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// refusedLearner returns the API server's refusal of the newest attempt's Job, or of an object that belongs to it.
func refusedLearner(seen observe.State) problem.Problem {
	return refusal.OfObject(seen.Refused.Problem, "learner", "podOverrides[target=Learner]")
}

// refusedWorkers returns the API server's refusal of the workers' Job or Service.
func refusedWorkers(seen observe.State) problem.Problem {
	return refusal.OfObject(seen.RefusedWorkers.Problem, "workers", "podOverrides[target=Workers]")
}

// refusals are the codes of attempts that wait for another spec.
var refusals = []problem.Code{problem.SpecRefused, problem.SettingsDiffer, problem.ResumeRefused}

// refusedSpec blocks a run until its spec changes: its learner's Job is not valid with this manager's defaults of pods,
// or its learner found a step that was committed with other settings, or cannot continue the run of spec.resumeFrom.
// just says that the attempt has ended in this reconcile. If it ended earlier, the condition Accepted shows which
// generation of the spec was refused.
func refusedSpec(run *v1alpha1.TrainingRun, seen observe.State, just bool) *problem.Problem {
	ended := run.Status.Attempts
	if len(ended) == 0 || !slices.Contains(refusals, problem.Code(ended[0].Reason)) {
		return nil
	}
	code := problem.Code(ended[0].Reason)
	was := status.Find(run.Status.Conditions, run.Status.Codes, v1alpha1.ConditionAccepted)
	if code == problem.SpecRefused && seen.Refused.Code == "" {
		return nil // Another manager was refused, perhaps with other defaults of pods: this manager tries once.
	}
	switch {
	case just && code == problem.SpecRefused && seen.Refused.Generation == run.Generation:
		refused := refusedLearner(seen)
		return &refused
	case just && code != problem.SpecRefused && !settingsChanged(run, seen):
		return &problem.Problem{Code: code, Evidence: ended[0].Message}
	case !just && saysOf(was, code, run.Generation):
		return &problem.Problem{Code: code, Told: was.Message}
	default:
		return nil // The spec has changed since.
	}
}

// saysOf reports whether a condition is False with a code, for a generation of its object.
func saysOf(c *status.Condition, code problem.Code, generation int64) bool {
	return c != nil && c.Status == metav1.ConditionFalse && c.Code == code && c.ObservedGeneration == generation
}

// workersRefused returns PodsReady if Kubernetes keeps workers from existing or from starting. A manager that has just
// started has not tried to create the Job itself, so the refusal that an earlier manager found stays.
func (v view) workersRefused() (status.Condition, bool) {
	const kind = v1alpha1.ConditionPodsReady
	o := v.seen.WorkersObstacle
	if o.Code == problem.WorkersUnanswered && !v.learnerServes() {
		o = problem.Problem{} // The workers are not ready because no learner answers them.
	}
	if created := refusedWorkers(v.seen); v.seen.Rollout == nil && (created.Code != "" || !o.NeedsAction()) {
		o = created
		c := meta.FindStatusCondition(v.run.Status.Conditions, kind)
		before := v.codeBefore(kind)
		if o.Code == "" && v.answeredBefore() && c != nil && c.ObservedGeneration == v.run.Generation &&
			(before == problem.CreateRefused || before == problem.SpecRefused) {
			return v.asBefore(kind), true
		}
	}
	return not(kind, o), o.NeedsAction()
}

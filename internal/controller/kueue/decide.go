// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// State is Kueue's state of a run. The zero value means that Kueue does not manage the run.
type State struct {
	// Managed reports whether Kueue decides when the run has pods.
	Managed bool
	// Version is the version of Kueue's API.
	Version string
	// Workload is the run's Workload; nil if it does not exist.
	Workload *Workload
	// Refused is the reason why the Workload could not be made; "" if there is none.
	Refused string
	// Sets are the pod sets that the run needs; nil if not known.
	Sets []PodSet
	// Digest is the digest of Sets; "" if not known.
	Digest string
}

// With returns the state of a run that needs the pod sets.
func (s State) With(run *v1alpha1.TrainingRun, sets []PodSet) State {
	s.Sets, s.Digest = sets, Digest(run, sets)
	return s
}

// Open reports whether the run may have pods.
func (s State) Open() bool {
	return !s.Managed || s.Workload != nil && s.Workload.open()
}

func (w *Workload) open() bool {
	return w.DeletionTimestamp == nil && w.is(conditionAdmitted) && !w.is(conditionEvicted) && !w.is(conditionFinished)
}

// Stops reports whether the run has to stop at a saved state, or may not start: Kueue has not admitted it, or has
// admitted other pods than the run needs now.
func (s State) Stops() bool { return !s.Open() || s.Managed && s.differs() }

// differs reports whether the Workload was made of other pod sets than the run needs now.
func (s State) differs() bool {
	return s.Digest != "" && s.Workload.Annotations[annotationDigest] != s.Digest
}

// Why returns, in Kueue's words, why the run may not have pods.
func (s State) Why() problem.Problem {
	switch w := s.Workload; {
	case w != nil && s.differs():
		return problem.Problem{Code: problem.Queued, Evidence: "the run has changed, and Kueue has to admit its new pods"}
	case w == nil && s.Refused != "":
		return problem.Problem{Code: problem.WorkloadRefused, Evidence: s.Refused}
	case w == nil || w.DeletionTimestamp != nil:
		return problem.Problem{Code: problem.Queued, Evidence: "its Workload is being made"}
	case w.holdsQuota():
		c := meta.FindStatusCondition(w.Status.Conditions, conditionEvicted)
		return problem.Problem{Code: problem.Evicted, Evidence: c.Reason + ": " + c.Message}
	default:
		c := meta.FindStatusCondition(w.Status.Conditions, conditionQuotaReserved)
		if c != nil && c.Status == metav1.ConditionTrue {
			c = meta.FindStatusCondition(w.Status.Conditions, conditionAdmitted)
		}
		return problem.Problem{Code: problem.Queued,
			Evidence: cmp.Or(ptr.Deref(c, metav1.Condition{}).Message, "Kueue has not considered the run yet")}
	}
}

// Workers returns how many workers Kueue has admitted, which is fewer than the run asks for after a partial admission.
func (s State) Workers(run *v1alpha1.TrainingRun) int32 {
	wanted := *run.Spec.Rollouts.Workers
	if !s.Managed || s.Workload == nil || s.Workload.Status.Admission == nil {
		return wanted
	}
	for _, a := range s.Workload.Status.Admission.PodSetAssignments {
		if a.Name == WorkersSet && a.Count != nil {
			return min(wanted, *a.Count)
		}
	}
	return wanted
}

// Action is an action on a Workload.
type Action int

// The actions.
const (
	// Keep leaves the Workload as it is.
	Keep Action = iota
	// Create makes the Workload.
	Create
	// Delete deletes it, and with it the reservation.
	Delete
	// Release gives back the reservation of an evicted run.
	Release
	// Finish says that the run is over.
	Finish
)

// Facts are the facts about a run on which an Action depends.
type Facts struct {
	// Finished reports whether the run is over, and Suspended whether its spec or a budget suspends it.
	Finished, Suspended bool
	// Idle reports whether the run has no pods.
	Idle bool
	// Due reports whether an attempt could start now.
	Due bool
}

// Decide returns the action on the Workload of a run. No action gives a reservation back while the run has pods.
func (s State) Decide(f Facts) Action {
	w := s.Workload
	switch {
	case w == nil && s.wants(f):
		return Create
	case w == nil || w.DeletionTimestamp != nil:
		return Keep
	case !s.Managed && !f.Finished:
		return Delete
	case !f.Idle, f.Finished && w.is(conditionFinished):
		return Keep
	case f.Finished:
		return Finish
	case f.Suspended || w.is(conditionFinished) || s.differs():
		return Delete
	case w.holdsQuota():
		return Release
	}
	return Keep
}

// holdsQuota reports whether an evicted Workload still reserves quota.
func (w *Workload) holdsQuota() bool { return w.is(conditionEvicted) && w.is(conditionQuotaReserved) }

// wants reports whether a run needs a Workload.
func (s State) wants(f Facts) bool {
	return s.Managed && f.Due && f.Idle && !f.Finished && !f.Suspended
}

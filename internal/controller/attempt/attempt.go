// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package attempt records the attempts of a run: an attempt's start, its learner's reports, and its ending by its pod,
// its Job and its verdict. It decides whether an ending ends the run, and how long the next attempt waits.
package attempt

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// maxAttempts bounds the list of attempts.
const maxAttempts = 10

// Record records the start of an attempt and, with the first attempt, the values that the run is fixed to.
func Record(next *v1alpha1.TrainingRunStatus, spec v1alpha1.TrainingRunSpec, file *contract.RunFile, number int32,
	now time.Time) {
	at := metav1.NewTime(now)
	if next.StartTime == nil {
		next.StartTime = &at
	}
	all := append([]v1alpha1.Attempt{{Number: number, StartTime: &at}}, next.Attempts...)
	next.Attempts = all[:min(len(all), maxAttempts)]
	next.Restarts = ptr.To(restarts(next))
	next.Environments = pinnedStatus(next.Environments, file)
	if file.Fixed.Algorithm == nil {
		return
	}
	if steps := file.Algorithm().Steps; steps > 0 { // a supervised run with epochs learns them from its rows
		next.Steps = ptr.To(steps)
	}
	next.Epochs = nil
	if epochs := spec.Algorithm.Epochs; epochs > 0 {
		next.Epochs = &epochs
	}
	if next.Step == nil {
		next.Step = ptr.To[int64](0)
	}
}

// restarts returns the number of restarts. It counts the newest attempt if the attempt before it ended by itself.
func restarts(next *v1alpha1.TrainingRunStatus) int32 {
	count := ptr.Deref(next.Restarts, 0)
	if len(next.Attempts) < 2 {
		return count
	}
	former := next.Attempts[1]
	// A run may be resumed before its learner has stopped.
	asked := former.Reason == string(problem.StopRequested) || AskedToStop(*next)
	if former.Cause == string(contract.CauseCompleted) {
		return count // The run was given more steps.
	}
	drained := former.Cause == string(contract.CauseDrained) && (former.FromStep == nil || asked)
	if drained || former.Reason == string(problem.SettingsChanged) || former.Reason == string(problem.JobSuspended) ||
		former.Cause == string(contract.CauseRefused) {
		return count
	}
	return count + 1
}

// AskedToStop reports whether a run was to be suspended when its status was written.
func AskedToStop(s v1alpha1.TrainingRunStatus) bool {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSuspended)
	return c != nil && c.Status != metav1.ConditionFalse
}

// pinnedStatus lists the environments of a run file and keeps the known status of each.
func pinnedStatus(before []v1alpha1.EnvironmentStatus, file *contract.RunFile) []v1alpha1.EnvironmentStatus {
	known := map[string]v1alpha1.EnvironmentStatus{}
	for _, e := range before {
		known[e.Name] = e
	}
	var listed []v1alpha1.EnvironmentStatus
	add := func(e contract.Environment) {
		if slices.ContainsFunc(listed, func(l v1alpha1.EnvironmentStatus) bool { return l.Name == e.Name }) {
			return
		}
		entry := known[e.Name]
		entry.Name, entry.Digest, entry.Tasks = e.Name, e.Digest, ptr.To(e.Tasks())
		listed = append(listed, entry)
	}
	for _, e := range file.Fixed.Environments {
		add(e)
	}
	if file.Evaluation != nil {
		for _, e := range file.Evaluation.Environments {
			add(e)
		}
	}
	slices.SortFunc(listed, func(a, b v1alpha1.EnvironmentStatus) int { return cmp.Compare(a.Name, b.Name) })
	return listed
}

// End records how the newest attempt ended.
func End(next *v1alpha1.TrainingRunStatus, end Ending, now time.Time) {
	if CountsAsFailure(string(end.Cause)) {
		next.FailuresSinceCheckpoint = ptr.To(ptr.Deref(next.FailuresSinceCheckpoint, 0) + 1)
	}
	newest := &next.Attempts[0]
	newest.Cause = string(end.Cause)
	newest.Reason = string(end.Reason.Bounded())
	newest.Message = status.Trim(end.Message, MaxMessage)
	next.ActiveSeconds = ptr.To(ptr.Deref(next.ActiveSeconds, 0) +
		int64(desired.AttemptLasted(*newest, now).Round(time.Second).Seconds()))
	newest.CompletionTime = ptr.To(metav1.NewTime(now))
	next.Attempts = Join(next.Attempts)
}

// Report writes a progress into the status, and into the newest attempts' entries. A checkpoint of a further
// step refills the restart budget.
func Report(next *v1alpha1.TrainingRunStatus, p contract.Progress, now time.Time) {
	before := status.LatestStep(next)
	status.Report(next, p, now)
	if status.LatestStep(next) > before {
		next.FailuresSinceCheckpoint = ptr.To[int32](0)
	}
	if p.Phase == contract.PhaseOpening && p.Lineage == "" {
		return
	}
	newest := &next.Attempts[0]
	newest.FromStep, newest.ToStep = ptr.To(p.FromStep), ptr.To(max(p.Step, p.FromStep))
	if p.ColdOptimizer {
		newest.ColdOptimizer = ptr.To(true)
	}
	if p.LostVersions > 0 {
		newest.LostVersions = ptr.To(p.LostVersions)
	}
	// A learner that was killed could not report how far it had come; the step at which its successor starts shows it.
	if len(next.Attempts) > 1 {
		previous := &next.Attempts[1]
		previous.ToStep = ptr.To(max(ptr.Deref(previous.ToStep, 0), p.FromStep))
	}
}

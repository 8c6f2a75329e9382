// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Minimum times between two writes that have nothing new but the figures of steps.
const (
	writeFigures = 30 * time.Second
	// writeNewHistory is the interval for the history of a new learner.
	writeNewHistory = 10 * time.Second
	// newLearner is the time after the start of a learner's container during which its figures are written as often as
	// everything else. People thus see how a run starts, and how a short run proceeds.
	newLearner = 2 * time.Minute
)

// HistoryEvery returns the minimum time between two writes of a history. since is when the learner's container started.
func HistoryEvery(since, now time.Time) time.Duration {
	if now.Sub(since) < newLearner {
		return writeNewHistory
	}
	return writeFigures
}

// Pace has the facts about a run that Due depends on.
type Pace struct {
	// everySteps is checkpoints.everySteps.
	everySteps int64
	// figures is the minimum time between two writes in which nothing but figures differs.
	figures time.Duration
}

// PaceFor returns the pace of a run. since is when its newest learner's container started; the zero time if it does not
// run.
func PaceFor(run *v1alpha1.TrainingRun, since, now time.Time) Pace {
	rule := Pace{everySteps: *run.Spec.Checkpoints.EverySteps, figures: writeFigures}
	// Without artifacts, and if the endpoint lists no checkpoints, only the status has the paths that a next attempt can
	// load if the manager ends together with the learner.
	alone := run.Spec.Artifacts == nil && status.Lacks(run.Status.Capabilities, contract.CapabilityListCheckpoints)
	if alone || now.Sub(since) < newLearner {
		rule.figures = writeEvery
	}
	return rule
}

// onlyFigures reports whether two statuses differ only in figures that each step changes. A lasting checkpoint, a first
// or best one, and an evaluation are further differences. everySteps is checkpoints.everySteps.
func onlyFigures(everySteps int64, before, after *v1alpha1.TrainingRunStatus) bool {
	if LastingCheckpoint(everySteps, before, after) != nil {
		return false
	}
	return equal(before, withFigures(after, before))
}

// evaluated returns the metrics of evaluations or, if is is false, the metrics of steps.
func evaluated(metrics []v1alpha1.MetricValue, is bool) []v1alpha1.MetricValue {
	return slices.DeleteFunc(slices.Clone(metrics),
		func(m v1alpha1.MetricValue) bool { return contract.IsEvaluation(m.Name) != is })
}

// withFigures returns a copy of a status with the figures of another.
func withFigures(s, from *v1alpha1.TrainingRunStatus) *v1alpha1.TrainingRunStatus {
	next := s.DeepCopy()
	next.Step = from.Step
	if status.SameCauses(next.Diagnoses, from.Diagnoses) {
		next.Diagnoses = from.Diagnoses
	}
	next.Usage, next.EffectiveTrainingRatio = from.Usage, from.EffectiveTrainingRatio
	if from.LatestCheckpoint != "" {
		next.LatestCheckpoint, next.Checkpoints = from.LatestCheckpoint, from.Checkpoints
	}
	if from.Metrics != nil && next.Metrics != nil {
		next.Metrics = append(evaluated(next.Metrics, true), evaluated(from.Metrics, false)...)
	}
	for i := range min(1, len(next.Attempts), len(from.Attempts)) {
		next.Attempts[i].ToStep = from.Attempts[i].ToStep
	}
	for i := range min(len(next.Environments), len(from.Environments)) {
		next.Environments[i].Reward, next.Environments[i].FaultRatio = from.Environments[i].Reward,
			from.Environments[i].FaultRatio
		next.Environments[i].Fault = from.Environments[i].Fault
	}
	return next
}

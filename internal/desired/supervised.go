// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// HasWorkers reports whether a run samples: a supervised run does only if it evaluates on environments.
func HasWorkers(run *v1alpha1.TrainingRun) bool {
	return run.Spec.Mode != v1alpha1.ModeSupervise || len(EvaluationUses(run)) > 0
}

// supervisedOf returns the data of a supervised run; nil for any other run.
func supervisedOf(spec v1alpha1.TrainingRunSpec) *contract.Supervised {
	if spec.Mode != v1alpha1.ModeSupervise {
		return nil
	}
	s := spec.Supervised
	made := &contract.Supervised{
		Dataset: *datasetOf(s.Dataset), TrainOn: string(s.TrainOn), BatchSize: int(ptr.Deref(s.BatchSize, 0)),
		MaxTokens: int(ptr.Deref(s.MaxTokens, 0)), Normalization: string(s.Normalization),
	}
	if s.Episodes != nil {
		made.MinReward, made.BestOfTask = s.Episodes.MinReward, s.Episodes.Select == v1alpha1.SelectBestOfTask
	}
	return made
}

// supervisedAlgorithm returns the part of an algorithm that a supervised run has. Its rows decide how many steps its
// epochs have, and the learner counts the rows.
func supervisedAlgorithm(spec *algorithm.Algorithm) *algorithm.Algorithm {
	a := spec.DeepCopy()
	return &algorithm.Algorithm{Steps: a.Steps, Epochs: a.Epochs, Seed: a.Seed, Substeps: 1, Optimizer: a.Optimizer}
}

// heldOutOf returns the splits whose negative log-likelihood is measured, sorted.
func heldOutOf(spec *v1alpha1.SupervisedEvaluation) []contract.HeldOut {
	if spec == nil {
		return nil
	}
	splits := spec.Splits
	if len(splits) == 0 {
		splits = []v1alpha1.EvaluationSplit{{Name: "test"}}
	}
	held := make([]contract.HeldOut, 0, len(splits))
	for _, split := range splits {
		held = append(held, contract.HeldOut{Name: split.Name, Take: ptr.Deref(split.Take, 0)})
	}
	slices.SortFunc(held, func(a, b contract.HeldOut) int { return cmp.Compare(a.Name, b.Name) })
	return held
}

// contentsOf returns the data that a supervised run has trained on; nil before its first step.
func contentsOf(run *v1alpha1.TrainingRun) *contract.DataContents {
	read := run.Status.Dataset
	if read == nil || run.Spec.Mode != v1alpha1.ModeSupervise || !ptr.Deref(run.Status.SettingsFixed, true) {
		return nil
	}
	return contentsIn(*read)
}

func contentsIn(read v1alpha1.DatasetStatus) *contract.DataContents {
	contents := &contract.DataContents{Revision: read.Revision}
	for _, s := range read.Sources {
		contents.Sources = append(contents.Sources, contract.DataSource{Name: s.Name, SHA256: s.SHA256,
			Rows: ptr.Deref(s.Rows, 0)})
	}
	return contents
}

// bestMetricOf returns the metric that ranks checkpoints. A supervised run that evaluates on no environment has no
// pass@1, and is ranked by its held-out rows unless the spec names another metric.
func bestMetricOf(run *v1alpha1.TrainingRun) string {
	if !HasWorkers(run) && run.Spec.Checkpoints.BestMetric == contract.MetricPassAt1 {
		return contract.MetricHeldOutNLL
	}
	return run.Spec.Checkpoints.BestMetric
}

// MountRows mounts the data of a supervised run in its learner's pod.
func MountRows(job *batchv1.Job, run *v1alpha1.TrainingRun, settings Settings) {
	rows := supervisedOf(run.Spec)
	if rows == nil {
		return
	}
	data := strings.Join(dataMounts(contract.Definition{Dataset: &rows.Dataset}), ",")
	mountData(job, data, PodOverrides(run, v1alpha1.TargetLearner), settings)
}

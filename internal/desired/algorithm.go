// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// algorithmOf fills the algorithm in; epochs become steps by the tasks of the environments.
func algorithmOf(a *v1alpha1.Algorithm, environments []contract.Environment) contract.Algorithm {
	steps := ptr.Deref(a.Steps, 0)
	if a.Epochs != nil {
		tasks := tasksOf(environments)
		steps = max(1, *a.Epochs*tasks/int64(a.TasksPerStep))
	}
	return contract.Algorithm{
		TasksPerStep: int(a.TasksPerStep),
		Steps:        steps,
		Seed:         *a.Seed,
		Advantage: contract.Advantage{
			Baseline: contract.Baseline(a.Advantage.Baseline),
			Scale:    contract.Scale(a.Advantage.Scale),
			DDoF:     int(*a.Advantage.DDoF),
		},
		Loss:               lossOf(a.Loss),
		Substeps:           int(*a.Substeps),
		Lag:                int(*a.Lag),
		DropConstantGroups: a.ConstantGroups == v1alpha1.DropConstantGroups,
		Refill:             a.OnDroppedGroup == v1alpha1.RefillDroppedGroups,
		Optimizer:          optimizerOf(a.Optimizer),
	}
}

func tasksOf(environments []contract.Environment) int64 {
	var tasks int64
	for _, environment := range environments {
		for _, split := range environment.Splits {
			tasks += split.Tasks
		}
	}
	return tasks
}

// lossOf spells the settings as the Tinker API does, all of them, since servers differ in their defaults.
func lossOf(l v1alpha1.Loss) contract.Loss {
	clip := func(low, high float64) map[string]float64 {
		return map[string]float64{
			contract.SettingClipLow:  ptr.Deref(l.ClipLow, low),
			contract.SettingClipHigh: ptr.Deref(l.ClipHigh, high),
		}
	}
	loss := contract.Loss{Name: contract.LossName(l.Name)}
	switch l.Name {
	case v1alpha1.LossPPO:
		loss.Config = clip(0.8, 1.2)
	case v1alpha1.LossCISPO:
		loss.Config = clip(0, 4)
	case v1alpha1.LossDRO:
		loss.Config = map[string]float64{contract.SettingBeta: ptr.Deref(l.Beta, 0.05)}
	}
	return loss
}

func optimizerOf(o v1alpha1.Optimizer) contract.Optimizer {
	return contract.Optimizer{
		LearningRate: o.LearningRate,
		Schedule:     contract.Schedule(o.Schedule),
		WarmupSteps:  *o.WarmupSteps,
		Beta1:        *o.Beta1,
		Beta2:        *o.Beta2,
		Epsilon:      *o.Epsilon,
		WeightDecay:  *o.WeightDecay,
		GradClipNorm: *o.GradClipNorm,
	}
}

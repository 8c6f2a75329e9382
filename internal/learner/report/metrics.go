// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
)

// SetStep replaces the metrics of the step, and keeps the metrics of the newest evaluation.
func (s *Status) SetStep(metrics map[string]float64, diverged bool) {
	s.Update(func(p *contract.Progress) {
		p.Metrics = merge(metrics, p.Metrics, contract.IsEvaluation)
		p.Diverged = p.Diverged || diverged
	})
}

// SetEvaluation replaces the metrics of the evaluation, and keeps the metrics of the newest step. Evaluations may end
// in another order than their steps: an evaluation of an earlier step than the shown one is not shown.
func (s *Status) SetEvaluation(file contract.RunFile, step int64, metrics map[string]float64) {
	s.Update(func(p *contract.Progress) {
		if shown := p.EvaluatedStep; shown != nil && step < *shown && *shown <= p.Step {
			return
		}
		// Held-out rows and episodes of one step are evaluated apart.
		same := p.EvaluatedStep != nil && *p.EvaluatedStep == step
		p.EvaluatedStep = &step
		p.Metrics = merge(metrics, p.Metrics, func(name string) bool { return same || !contract.IsEvaluation(name) })
		p.Environments = Environments(file, p.Metrics)
	})
}

// merge returns the metrics with the former metrics that are kept.
func merge(metrics, before map[string]float64, keep func(name string) bool) map[string]float64 {
	merged := map[string]float64{}
	for name, value := range before {
		if keep(name) {
			merged[name] = value
		}
	}
	maps.Copy(merged, metrics)
	return merged
}

// Environments returns the metrics of each environment.
func Environments(file contract.RunFile, metrics map[string]float64) []contract.EnvironmentMetrics {
	const most = 32
	names := map[string]bool{}
	for _, env := range file.Fixed.Environments {
		names[env.Name] = true
	}
	if file.Evaluation != nil {
		for _, env := range file.Evaluation.Environments {
			names[env.Name] = true
		}
	}
	pick := func(name string) *float64 {
		if value, ok := metrics[name]; ok {
			return &value
		}
		return nil
	}
	var list []contract.EnvironmentMetrics
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, contract.EnvironmentMetrics{
			Name: name, Reward: pick("env/" + name + "/reward/total"),
			PassAt1: pick("test/" + name + "/pass@1"), FaultRatio: pick("env/" + name + "/fault_ratio"),
			Evaluation: measure.Estimates(metrics, name),
		})
	}
	return list[:min(len(list), most)]
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"fmt"
	"maps"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// stepWork is what a step sends.
type stepWork struct {
	datums   []rl.Datum
	adam     tinker.AdamParams
	settings rl.Settings
}

// prepareStep turns a batch into training data and settles the optimizer's settings.
func (l *learner) prepareStep(batch leases.Batch) (stepWork, error) {
	alg := l.file.Fixed.Algorithm
	datums, err := rl.Datums(batch.Groups, rl.Advantages(batch.Groups, alg.Advantage))
	if err != nil {
		return stepWork{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
	}
	optimizer := alg.Optimizer
	rate := rl.LearningRate(optimizer, batch.Slots.Step, alg.Steps)
	return stepWork{
		datums: datums,
		adam: tinker.AdamParams{
			LearningRate: rate, Beta1: optimizer.Beta1, Beta2: optimizer.Beta2, Eps: optimizer.Epsilon,
			WeightDecay: optimizer.WeightDecay, GradClipNorm: optimizer.GradClipNorm,
		},
		settings: rl.Settings{
			LearningRate: rate, Optimizer: optimizer, Loss: alg.Loss, Advantage: alg.Advantage, Substeps: alg.Substeps,
		},
	}, nil
}

func lossOf(file contract.RunFile) tinker.Loss {
	return tinker.Loss{Name: tinker.LossName(file.Fixed.Algorithm.Loss.Name), Config: file.Fixed.Algorithm.Loss.Config}
}

// measure gives the metrics of a step.
func (l *learner) measure(batch leases.Batch, work stepWork, replies trainee.Replies, clock *stopwatch) map[string]float64 {
	metrics := rl.StepMetrics(batch.Groups)
	maps.Copy(metrics, rl.ProgressMetrics(batch.Slots.Step, l.file.Fixed.Algorithm.Steps))
	maps.Copy(metrics, replies.Metrics)
	metrics["optim/lr"] = work.adam.LearningRate
	if len(replies.Logprobs) > 0 {
		if divergence, err := rl.Diverge(work.datums, replies.Logprobs); err == nil {
			maps.Copy(metrics, divergence.Metrics())
		}
	}
	if lag := batch.Slots.Step - batch.Version.Step; lag > 0 {
		metrics["batch/lag"] = float64(lag)
	}
	maps.Copy(metrics, clock.laps)
	total := clock.total()
	metrics["time/total"] = total
	if total > 0 {
		metrics["sampled_tokens_per_second"] = metrics["batch/sampled_tokens"] / total
	}
	for _, d := range work.datums {
		l.usage.trained += int64(len(d.Tokens))
	}
	l.usage.seconds += total
	return metrics
}

// stopwatch measures the parts of a step in seconds.
type stopwatch struct {
	now         func() time.Time
	began, last time.Time
	laps        map[string]float64
}

func newStopwatch(now func() time.Time) *stopwatch {
	t := now()
	return &stopwatch{now: now, began: t, last: t, laps: map[string]float64{}}
}

func (s *stopwatch) lap(name string) {
	t := s.now()
	s.laps[name] = t.Sub(s.last).Seconds()
	s.last = t
}

func (s *stopwatch) total() float64 { return s.now().Sub(s.began).Seconds() }

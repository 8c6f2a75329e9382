// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// LossesIn returns the losses of a run: the losses of its algorithm, or cross_entropy for a supervised run.
func LossesIn(fixed contract.Fixed) Losses {
	if fixed.Supervised != nil {
		return crossEntropy
	}
	return LossesOf(*fixed.Algorithm)
}

var crossEntropy = Losses{losses: []tinker.Loss{{Name: tinker.LossCrossEntropy}}}

// PrepareIn turns a batch of a run into training data and decides the optimizer's settings.
func PrepareIn(fixed contract.Fixed, batch leases.Batch) (Work, error) {
	alg := *fixed.Algorithm
	if fixed.Supervised == nil {
		return Prepare(alg, fixed.Teachers(), batch)
	}
	datums, err := rl.Datums(batch.Groups, rl.Advantages(batch.Groups, algorithm.Algorithm{
		Advantage: algorithm.Advantage{Baseline: algorithm.BaselineNone, Scale: algorithm.ScaleNone},
	}))
	if err != nil {
		return Work{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
	}
	return workOf(alg, batch, datums), nil
}

// measureExamples returns the metrics of a step of examples.
func measureExamples(batch leases.Batch, work Work, replies Replies) map[string]float64 {
	metrics := measure.ExampleMetrics(batch.Groups)
	var nll supervised.NLL
	for i, d := range work.Datums {
		if i >= len(replies.Logprobs) || nll.Add(d.Weights, replies.Logprobs[i]) != nil {
			return metrics
		}
	}
	if mean, ok := nll.Mean(); ok {
		metrics[contract.MetricNLL] = mean
	}
	return metrics
}

// MeasureIn is like Measure, but also measures steps of supervised runs.
func MeasureIn(fixed contract.Fixed, batch leases.Batch, work Work, replies Replies,
	clock *Stopwatch) (metrics map[string]float64, total float64) {
	if fixed.Supervised == nil {
		return Measure(batch, work, replies, clock, fixed.Algorithm.Steps)
	}
	metrics = measureExamples(batch, work, replies)
	maps.Copy(metrics, measure.ProgressMetrics(batch.Slots.Step, fixed.Algorithm.Steps))
	maps.Copy(metrics, replies.Metrics)
	metrics["optim/lr"] = work.Adam.LearningRate
	maps.Copy(metrics, clock.laps)
	total = clock.total()
	addTime(metrics, total)
	return metrics, total
}

// Logprobs returns the log-probabilities of the targets of examples, by forward passes, which leave no gradient. They
// are nil if the endpoint returns none.
func (m *Model) Logprobs(ctx context.Context, datums []rl.Datum) ([][]float32, error) {
	future, err := m.model.ForwardEach(ctx, encode(datums, tinker.LossCrossEntropy), crossEntropy.losses[0])
	if err != nil {
		return nil, passing.Failed(err, "measuring examples")
	}
	result, err := future.Wait(ctx)
	if err != nil {
		return nil, passing.Failed(err, "measuring examples")
	}
	return logprobsOf(result, len(datums))
}

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
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// stepWork is what a step submits.
type stepWork struct {
	datums   []rl.Datum
	adam     tinker.AdamParams
	settings rl.Settings
	// klReference is the mean difference to the log-probabilities of the KL penalty's reference; nil without one.
	klReference *float64
}

// prepareStep turns a batch into training data and decides the optimizer's settings.
func prepareStep(alg contract.Algorithm, batch leases.Batch) (stepWork, error) {
	datums, err := rl.Datums(batch.Groups, rl.Advantages(batch.Groups, alg))
	if err != nil {
		return stepWork{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
	}
	var mean *float64
	if alg.KL != nil && len(datums) > 0 {
		value, err := rl.Penalise(datums, *alg.KL)
		if err != nil {
			return stepWork{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
		}
		mean = &value
	}
	optimizer := alg.Optimizer
	rate := rl.LearningRate(optimizer, batch.Slots.Step, alg.Steps)
	return stepWork{
		datums: datums, klReference: mean,
		adam: tinker.AdamParams{
			LearningRate: rate, Beta1: optimizer.Beta1, Beta2: optimizer.Beta2, Eps: optimizer.Epsilon,
			WeightDecay: optimizer.WeightDecay, GradClipNorm: optimizer.GradClipNorm,
		},
		settings: rl.Settings{
			LearningRate: rate, Optimizer: optimizer, Loss: alg.Loss, Advantage: alg.Advantage, Substeps: alg.Substeps,
			Grouping: alg.Grouping, Roles: alg.Roles, KL: alg.KL,
		},
	}, nil
}

// tokens counts the tokens that the step trains on.
func (w stepWork) tokens() int64 {
	var n int64
	for _, d := range w.datums {
		n += int64(len(d.Tokens))
	}
	return n
}

// referenceTokens counts the tokens that the reference of a KL penalty reads.
func (w stepWork) referenceTokens() int64 {
	if w.klReference == nil {
		return 0
	}
	return w.tokens() + int64(len(w.datums))
}

// measureStep returns the metrics of a step, with the share of the run's steps that are done, and the seconds that it took.
func measureStep(
	batch leases.Batch, work stepWork, replies trainee.Replies, clock *stopwatch, steps int64,
) (metrics map[string]float64, total float64) {
	metrics = measure.StepMetrics(batch.Groups)
	maps.Copy(metrics, measure.ProgressMetrics(batch.Slots.Step, steps))
	maps.Copy(metrics, replies.Metrics)
	metrics["optim/lr"] = work.adam.LearningRate
	if len(replies.Logprobs) > 0 {
		if divergence, err := rl.Diverge(work.datums, replies.Logprobs); err == nil {
			maps.Copy(metrics, divergence.Metrics())
		}
	}
	if work.klReference != nil {
		metrics["kl_policy_base"] = *work.klReference
		metrics["batch/reference_tokens"] = float64(work.referenceTokens())
	}
	if lag := batch.Slots.Step - batch.Version.Step; lag > 0 {
		metrics["batch/lag"] = float64(lag)
	}
	maps.Copy(metrics, clock.laps)
	total = clock.total()
	addTime(metrics, total)
	return metrics, total
}

// addTime adds to the time that a step took.
func addTime(metrics map[string]float64, seconds float64) {
	total := metrics[contract.MetricStepSeconds] + seconds
	metrics[contract.MetricStepSeconds] = total
	if total > 0 {
		metrics[contract.MetricSampledTokensPerSecond] = metrics["batch/sampled_tokens"] / total
	}
}

// addSave adds the time of a step's commit to its metrics.
func addSave(metrics map[string]float64, seconds float64) {
	metrics["time/save_checkpoint"] = seconds
	addTime(metrics, seconds)
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

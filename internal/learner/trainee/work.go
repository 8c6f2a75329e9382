// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/distill"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Work is the data and settings that a step submits.
type Work struct {
	Datums   []rl.Datum
	Adam     tinker.AdamParams
	Settings rl.Settings
	// klReference is the mean difference to the log-probabilities of the KL penalty's reference; nil if there is none.
	klReference *float64
	// klTeachers are the divergences from teachers, by environment; empty if there are no teachers.
	klTeachers map[string]distill.KL
}

// Prepare turns a batch into training data and decides the optimizer's settings. Teachers are keyed by the names of
// their environments.
func Prepare(alg algorithm.Algorithm, teachers map[string]algorithm.Teacher, batch leases.Batch) (Work, error) {
	datums, err := rl.Datums(batch.Groups, rl.Advantages(batch.Groups, alg))
	if err != nil {
		return Work{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
	}
	var mean *float64
	if alg.KL != nil && len(datums) > 0 {
		value, err := rl.Penalise(datums, *alg.KL)
		if err != nil {
			return Work{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
		}
		mean = &value
	}
	work := workOf(alg, batch, datums)
	work.klReference, work.Settings.Teachers = mean, teachers
	if work.klTeachers, err = distill.Teach(lessonsOf(batch.Groups, datums, teachers)); err != nil {
		return Work{}, fmt.Errorf("preparing step %d: %w", batch.Slots.Step+1, err)
	}
	return work, nil
}

// lessonsOf returns the data that teachers have scored, with the teachers' log-probabilities. It spreads the
// advantages of these data.
func lessonsOf(groups []rl.Group, datums []rl.Datum, teachers map[string]algorithm.Teacher) []distill.Lesson {
	environments := map[int64]string{}
	for _, g := range groups {
		environments[g.Key.Slot] = g.Environment
	}
	var lessons []distill.Lesson
	for i := range datums {
		name := environments[datums[i].Slot]
		if t, ok := teachers[name]; ok {
			datums[i].Spread()
			d := datums[i]
			lessons = append(lessons, distill.Lesson{Datum: d, Environment: name, Teacher: d.TeacherLogprobs,
				Coefficient: t.Coefficient, Discount: t.Discount})
		}
	}
	return lessons
}

// workOf returns the work of a step, with the optimizer's settings of the step.
func workOf(alg algorithm.Algorithm, batch leases.Batch, datums []rl.Datum) Work {
	optimizer := alg.Optimizer
	rate := rl.LearningRate(optimizer, batch.Slots.Step, alg.Steps)
	return Work{
		Datums: datums,
		Adam: tinker.AdamParams{
			LearningRate: rate, Beta1: *optimizer.Beta1, Beta2: *optimizer.Beta2, Eps: optimizer.Epsilon,
			WeightDecay: optimizer.WeightDecay, GradClipNorm: optimizer.GradClipNorm,
		},
		Settings: rl.Settings{LearningRate: rate, Algorithm: alg},
	}
}

// Tokens counts the tokens that the step trains on.
func (w Work) Tokens() int64 {
	var n int64
	for _, d := range w.Datums {
		n += int64(len(d.Tokens))
	}
	return n
}

// ReferenceTokens counts the tokens that the reference of a KL penalty reads.
func (w Work) ReferenceTokens() int64 {
	if w.klReference == nil {
		return 0
	}
	return w.Tokens() + int64(len(w.Datums))
}

// Measure returns the metrics of a step, with the share of the run's steps that are done, and the seconds that it took.
func Measure(
	batch leases.Batch, work Work, replies Replies, clock *Stopwatch, steps int64,
) (metrics map[string]float64, total float64) {
	metrics = measure.StepMetrics(batch.Groups)
	maps.Copy(metrics, measure.ProgressMetrics(batch.Slots.Step, steps))
	maps.Copy(metrics, replies.Metrics)
	metrics["optim/lr"] = work.Adam.LearningRate
	if len(replies.Logprobs) > 0 {
		if divergence, err := rl.Diverge(work.Datums, replies.Logprobs); err == nil {
			maps.Copy(metrics, divergence.Metrics())
		}
	}
	if work.klReference != nil {
		metrics["kl_policy_base"] = *work.klReference
		metrics["batch/reference_tokens"] = float64(work.ReferenceTokens())
	}
	addTeachers(metrics, work.klTeachers)
	if lag := batch.Slots.Step - batch.Version.Step; lag > 0 {
		metrics["batch/lag"] = float64(lag)
	}
	maps.Copy(metrics, clock.laps)
	total = clock.total()
	addTime(metrics, total)
	return metrics, total
}

// addTeachers adds the divergence from teachers, for each environment and all together.
func addTeachers(metrics map[string]float64, kl map[string]distill.KL) {
	var all distill.KL
	for name, one := range kl {
		metrics["env/"+name+"/"+contract.MetricTeacherKL] = one.Mean()
	}
	for _, name := range slices.Sorted(maps.Keys(kl)) {
		all.Sum, all.Tokens = all.Sum+kl[name].Sum, all.Tokens+kl[name].Tokens
	}
	if len(kl) > 0 {
		metrics[contract.MetricTeacherKL] = all.Mean()
	}
}

// addTime adds to the time that a step took.
func addTime(metrics map[string]float64, seconds float64) {
	total := metrics[contract.MetricStepSeconds] + seconds
	metrics[contract.MetricStepSeconds] = total
	if sampled, ok := metrics["batch/sampled_tokens"]; ok && total > 0 {
		metrics[contract.MetricSampledTokensPerSecond] = sampled / total
	}
}

// AddSave adds the time of a step's commit to its metrics.
func AddSave(metrics map[string]float64, seconds float64) {
	metrics["time/save_checkpoint"] = seconds
	addTime(metrics, seconds)
}

// Stopwatch measures the parts of a step in seconds.
type Stopwatch struct {
	now         func() time.Time
	began, last time.Time
	laps        map[string]float64
}

// NewStopwatch returns a stopwatch that begins now.
func NewStopwatch(now func() time.Time) *Stopwatch {
	t := now()
	return &Stopwatch{now: now, began: t, last: t, laps: map[string]float64{}}
}

// Lap records the time since the last lap, or since the beginning, under a name.
func (s *Stopwatch) Lap(name string) {
	t := s.now()
	s.laps[name] = t.Sub(s.last).Seconds()
	s.last = t
}

func (s *Stopwatch) total() float64 { return s.now().Sub(s.began).Seconds() }

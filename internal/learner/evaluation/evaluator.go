// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package evaluation scores versions of a run's policy on held-out tasks while the run trains on.
package evaluation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/measure"
)

// table demands groups of the workers.
type table interface {
	Demand(name string, leases []exchange.Lease)
	Withdraw(name string)
	Groups(leases []exchange.Lease) ([]rl.Group, bool)
	Changed() <-chan struct{}
}

// policies knows which policies workers can sample.
type policies interface {
	IsMissing(sampler string) bool
	CoverEvaluation(e exchange.Evaluation)
}

// samplers finds the sampler weights of versions, or makes them again.
type samplers interface {
	Find(ctx context.Context, v rl.Version) (leases.Version, error)
	Remake(ctx context.Context, v rl.Version) (string, error)
}

// results reads and writes the results of evaluations.
type results interface {
	HasStore() bool
	Evaluation(v rl.Version, digest string) (artifacts.Evaluation, bool)
	WriteEvaluation(ctx context.Context, result artifacts.Evaluation, episodes []byte) error
}

// versions is the chain of versions that led to the current one.
type versions interface {
	Version(step int64) (rl.Version, bool)
	Score(v rl.Version, value float64)
}

// Config configures an Evaluator.
type Config struct {
	Schedule Schedule
	Attempt  int32
	// Metric is the metric by which the best versions are chosen.
	Metric   string
	Table    table
	Policies policies
	Samplers samplers
	Results  results
	Versions versions
	// Evaluated receives the step and the metrics of each evaluation that ends.
	Evaluated func(step int64, metrics map[string]float64)
	// Settled receives each result before Evaluated does, including results of versions that can no longer be evaluated.
	// It may be nil.
	Settled func(result artifacts.Evaluation)
	// Blocked receives the reason for which an evaluation is tried again, and an empty text once an evaluation has its
	// result.
	Blocked func(problem string)
	// Pause waits before the next try, the longer the more tries have failed.
	Pause  func(ctx context.Context, failures int) error
	Logger *slog.Logger
}

// Evaluator evaluates the versions that are due.
type Evaluator struct {
	Config
	tasks tasks
}

// New returns an evaluator that has not started.
func New(config Config) *Evaluator { return &Evaluator{Config: config} }

// Start prepares for evaluations that end with ctx.
func (e *Evaluator) Start(ctx context.Context) { e.tasks.start(ctx) }

// Stop stops all evaluations.
func (e *Evaluator) Stop() {
	e.tasks.stop()
	e.Blocked("")
}

// Wait waits until no evaluation is in progress, and fails if the endpoint refused the API key.
func (e *Evaluator) Wait(ctx context.Context) error { return e.tasks.wait(ctx) }

// Outstanding lists the versions whose evaluation has no result yet.
func (e *Evaluator) Outstanding() []rl.Version { return e.tasks.outstanding() }

// Measures reports whether a metric is a metric of the evaluations.
func (e *Evaluator) Measures(metric string) bool {
	return e.Schedule.Digest != "" && contract.IsEvaluation(metric)
}

// Begin begins the evaluations that are due and have no result, for the versions of the chain up to the saved
// version. Without a store, earlier results are not known, and the saved version alone is evaluated.
func (e *Evaluator) Begin(saved int64) {
	first := int64(0)
	if !e.Results.HasStore() {
		first = saved
	}
	for step := first; step <= saved; step++ {
		v, ok := e.Versions.Version(step)
		if !ok || !e.Schedule.IsDue(step) || e.tasks.isKnown(v) {
			continue
		}
		if result, ok := e.result(v); ok {
			e.settle(v, result)
			continue
		}
		e.tasks.begin(v, func(ctx context.Context) error { return e.run(ctx, v) })
	}
}

// settle makes workers drop the groups of an evaluation that already had its result, and reports the result again:
// the workers and the manager may not have received it from the attempt that made it.
func (e *Evaluator) settle(v rl.Version, result artifacts.Evaluation) {
	e.tasks.settle(v, result)
	e.report(result)
	e.Policies.CoverEvaluation(exchange.Evaluation{Digest: e.Schedule.Digest, Lineage: v.Lineage})
}

// Restore scores the versions of the chain that were evaluated before, up to a step.
func (e *Evaluator) Restore(step int64) {
	for s := range step + 1 {
		v, ok := e.Versions.Version(s)
		if !ok || !e.Schedule.IsDue(s) {
			continue
		}
		if result, ok := e.result(v); ok {
			e.score(v, result.Metrics)
		}
	}
}

func (e *Evaluator) score(v rl.Version, metrics map[string]float64) {
	if value, ok := metrics[e.Metric]; ok {
		e.Versions.Score(v, value)
	}
}

// result returns the result of the evaluation of a version, if this process or the store has it.
func (e *Evaluator) result(v rl.Version) (artifacts.Evaluation, bool) {
	if result, ok := e.tasks.result(v); ok {
		return result, true
	}
	return e.Results.Evaluation(v, e.Schedule.Digest)
}

// run evaluates a version, and tries again after each failure except a refused API key: the learner as a whole deals
// with a refused key. Between two tries nothing is demanded of the workers.
func (e *Evaluator) run(ctx context.Context, v rl.Version) error {
	for failures := 1; ; failures++ {
		err := e.evaluate(ctx, v)
		if err == nil {
			e.Blocked("")
			return nil
		}
		e.Table.Withdraw(demandName(v))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e.Logger.Warn("evaluation failed", "step", v.Step, "failures", failures, "err", err)
		if failure.CodeOf(err) == problem.KeyRefused {
			return err
		}
		e.Blocked(err.Error())
		if err := e.Pause(ctx, failures); err != nil {
			return err
		}
	}
}

// evaluate collects the groups of one evaluation, and makes its result durable.
func (e *Evaluator) evaluate(ctx context.Context, v rl.Version) error {
	result := artifacts.Evaluation{Version: v, Digest: e.Schedule.Digest, Attempt: e.Attempt}
	var episodes []byte
	groups, err := e.collect(ctx, v)
	switch {
	case errors.Is(err, checkpoints.ErrVersionLost):
		result.Lost = err.Error()
		e.Logger.Warn("version can no longer be evaluated", "step", v.Step, "err", err)
	case err != nil:
		return fmt.Errorf("evaluating step %d: %w", v.Step, err)
	default:
		result.Metrics, _ = measure.Finite(measure.EvaluationMetrics(groups, e.Schedule.Samples))
		if episodes, err = e.Schedule.episodes(v, groups); err != nil {
			e.Logger.Warn("episodes are not recorded", "step", v.Step, "err", err)
		}
		e.Logger.Info("version is evaluated", "step", v.Step, "metrics", result.Metrics)
	}
	if err := e.Results.WriteEvaluation(ctx, result, episodes); err != nil {
		return err
	}
	e.Policies.CoverEvaluation(exchange.Evaluation{Digest: e.Schedule.Digest, Lineage: v.Lineage})
	e.Table.Withdraw(demandName(v))
	e.score(v, result.Metrics)
	e.tasks.settle(v, result)
	e.report(result)
	return nil
}

// report reports a result. Only Settled receives the result of a version that can no longer be evaluated.
func (e *Evaluator) report(result artifacts.Evaluation) {
	if e.Settled != nil {
		e.Settled(result)
	}
	if result.Lost == "" {
		e.Evaluated(result.Step, result.Metrics)
	}
}

func demandName(v rl.Version) string {
	return fmt.Sprintf("evaluation %d %s", v.Step, v.Lineage.Short())
}

// collect demands the groups and waits for all of them. Sampler weights that are missing are made again.
func (e *Evaluator) collect(ctx context.Context, v rl.Version) ([]rl.Group, error) {
	version, err := e.Samplers.Find(ctx, v)
	if err != nil {
		return nil, err
	}
	demanded := e.Schedule.Leases(version)
	e.Table.Demand(demandName(v), demanded)
	for {
		changed := e.Table.Changed()
		groups, all := e.Table.Groups(demanded)
		if all {
			return groups, nil
		}
		if e.Policies.IsMissing(version.Sampler) {
			if version.Sampler, err = e.Samplers.Remake(ctx, v); err != nil {
				return nil, err
			}
			demanded = e.Schedule.Leases(version)
			e.Table.Demand(demandName(v), demanded)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

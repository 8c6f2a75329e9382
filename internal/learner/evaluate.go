// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// evaluations are those under way. They run beside training, and are stopped with the model: what has no
// row by then is begun anew, and what workers hold of it is not played again.
type evaluations struct {
	mu    sync.Mutex
	ctx   context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup
	// open are begun and have no result; done have one, failed is what ended one without.
	open   map[checkpoints.Version]bool
	done   map[checkpoints.Version]bool
	failed error
}

// start prepares for evaluations that end with ctx.
func (e *evaluations) start(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ctx, e.end = context.WithCancel(ctx)
	e.open, e.done, e.failed = map[checkpoints.Version]bool{}, map[checkpoints.Version]bool{}, nil
}

// stop ends them all.
func (e *evaluations) stop() {
	e.mu.Lock()
	end := e.end
	e.mu.Unlock()
	if end != nil {
		end()
	}
	e.tasks.Wait()
}

// begin runs an evaluation unless it was begun before.
func (e *evaluations) begin(v checkpoints.Version, run func(ctx context.Context) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open[v] || e.done[v] {
		return
	}
	e.open[v] = true
	ctx := e.ctx
	e.tasks.Go(func() {
		err := run(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil {
			e.failed = errors.Join(e.failed, err)
			return
		}
		delete(e.open, v)
		e.done[v] = true
	})
}

// isKnown says whether an evaluation is begun or has its result.
func (e *evaluations) isKnown(v checkpoints.Version) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[v] || e.done[v]
}

// settle notes that an evaluation has its result from before.
func (e *evaluations) settle(v checkpoints.Version) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done[v] = true
}

// outstanding are the versions whose evaluation has no row yet.
func (e *evaluations) outstanding() []checkpoints.Version {
	e.mu.Lock()
	defer e.mu.Unlock()
	var versions []checkpoints.Version
	for v := range e.open {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b checkpoints.Version) int { return int(a.Step - b.Step) })
	return versions
}

// wait returns when none is under way.
func (e *evaluations) wait(ctx context.Context) error {
	e.tasks.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// evaluateOutstanding begins the evaluations of saved versions of the chain that are due and have no row.
// Without artifacts nobody knows of results that came before, and only the version at hand counts.
func (l *learner) evaluateOutstanding() {
	first := int64(0)
	if l.store == nil {
		first = l.saved.step
	}
	for step := first; step <= l.saved.step; step++ {
		if !l.plan.isDue(step, l.file) {
			continue
		}
		short, ok := l.lineageAt(step)
		if !ok {
			continue
		}
		v := checkpoints.Version{Step: step, Lineage: short}
		if l.evaluations.isKnown(v) {
			continue
		}
		if _, ok := l.resultAt(step); ok {
			l.evaluations.settle(v)
			continue
		}
		l.evaluations.begin(v, func(ctx context.Context) error { return l.evaluate(ctx, v) })
	}
}

// resultAt reads the result of the evaluation of a version of the chain.
func (l *learner) resultAt(step int64) (store.Evaluation, bool) {
	short, ok := l.lineageAt(step)
	if !ok || l.store == nil {
		return store.Evaluation{}, false
	}
	lineage, err := rl.LineageFromShort(short)
	if err != nil {
		return store.Evaluation{}, false
	}
	result, err := l.store.Evaluation(step, lineage.String(), l.plan.digest)
	return result, err == nil
}

// evaluate has the groups of one evaluation played and makes the result durable.
func (l *learner) evaluate(ctx context.Context, v checkpoints.Version) error {
	result := store.Evaluation{Step: v.Step, Plan: l.plan.digest, Attempt: l.file.Attempt}
	lineage, err := rl.LineageFromShort(v.Lineage)
	if err != nil {
		return err
	}
	result.Lineage = lineage.String()
	groups, err := l.collectEvaluation(ctx, v)
	switch {
	case errors.Is(err, errVersionLost):
		result.Lost = err.Error()
		l.config.Logger.Warn("version can no longer be evaluated", "step", v.Step, "err", err)
	case err != nil:
		return fmt.Errorf("evaluating step %d: %w", v.Step, err)
	default:
		result.Metrics, _ = rl.Finite(rl.EvaluationMetrics(groups, l.plan.passAt))
		l.config.Logger.Info("version is evaluated", "step", v.Step, "metrics", result.Metrics)
	}
	if err := l.record(ctx, result); err != nil {
		return err
	}
	l.board.CoverEvaluation(exchange.Evaluation{Digest: l.plan.digest, Lineage: lineage})
	l.board.Withdraw(demandName(v))
	l.server.Notify()
	if value, ok := result.Metrics[l.file.Checkpoints.KeepBestMetric]; ok {
		l.keepBest(v, value)
	}
	l.measureEvaluation(result.Metrics)
	return nil
}

// record makes a result durable.
func (l *learner) record(ctx context.Context, result store.Evaluation) error {
	if l.store == nil {
		return nil
	}
	return l.insist(ctx, "writing evaluation", func() error {
		if err := l.store.WriteEvaluation(result); err != nil {
			return err
		}
		if l.train == nil || result.Lost != "" {
			return nil
		}
		return l.store.AppendEvaluation(result)
	})
}

func demandName(v checkpoints.Version) string {
	return fmt.Sprintf("evaluation %d %s", v.Step, v.Lineage)
}

// collectEvaluation demands the groups and waits for all of them. Sampler weights that are gone are made
// again.
func (l *learner) collectEvaluation(ctx context.Context, v checkpoints.Version) ([]rl.Group, error) {
	version, err := l.revive(ctx, v.Step)
	if err != nil {
		return nil, err
	}
	policy := leases.Policy{Lineage: version.Lineage, Evaluation: l.plan.digest}
	leases := l.plan.leases(version, l.seed())
	l.board.Demand(demandName(v), leases)
	for {
		changed := l.board.Changed()
		groups, all := l.board.Groups(leases)
		if all {
			return groups, nil
		}
		if l.board.TakeMissing(policy) {
			if version.Sampler, err = l.remake(ctx, v); err != nil {
				return nil, err
			}
			leases = l.plan.leases(version, l.seed())
			l.board.Demand(demandName(v), leases)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// seed of the run.
func (l *learner) seed() uint64 {
	if l.file.Fixed.Algorithm == nil {
		return 0
	}
	return uint64(l.file.Fixed.Algorithm.Seed)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// evaluationLeases counts the groups of evaluations that a worker was leased, by version. The versions are in the
// order of their first leases.
type evaluationLeases struct {
	mu       sync.Mutex
	versions []rl.Lineage
	groups   map[rl.Lineage]int
	changed  chan struct{}
}

func (e *evaluationLeases) add(lease exchange.Lease) {
	if lease.Key.Kind != rl.Evaluate {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.groups[lease.Key.Lineage]++; e.groups[lease.Key.Lineage] == 1 {
		e.versions = append(e.versions, lease.Key.Lineage)
		close(e.changed)
		e.changed = make(chan struct{})
	}
}

// of returns how many groups of an evaluation were leased, 0 before the first lease, and a channel that is closed when
// another evaluation begins.
func (e *evaluationLeases) of(evaluation int) (groups int, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if evaluation < len(e.versions) {
		groups = e.groups[e.versions[evaluation]]
	}
	return groups, e.changed
}

// begun waits until the first group of an evaluation was leased.
func (e *evaluationLeases) begun(ctx context.Context, evaluation int) error {
	for {
		groups, changed := e.of(evaluation)
		if groups > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TestEvaluationEndsBeforeTheNext evaluates every four steps, on 40 tasks, a run that samples more slowly than it
// trains: training always has groups to lease. With a share of 0.8, each training group of four episodes permits 16
// episodes of evaluations, so all 40 groups are leased before the next evaluation is due. The weights equal the
// weights of a run whose evaluations have no share.
func TestEvaluationEndsBeforeTheNext(t *testing.T) {
	const every, tasks = 4, 40
	weights, lineage := evaluateEvery(t, every, tasks, 0.8, func(w *fixture, leased *evaluationLeases) []hook {
		var hooks []hook
		for evaluation := range 2 {
			first := int64(evaluation*every + 1)
			hooks = append(hooks, w.at("covered.sent", first, func(ctx context.Context, _ func() error, _ string,
				_ int64) error {
				return leased.begun(ctx, evaluation)
			}), w.at("covered.sent", first+every-1, func(context.Context, func() error, string, int64) error {
				if groups, _ := leased.of(evaluation); groups != tasks {
					t.Errorf("%d groups of the evaluation of step %d are leased when the next one is due, want %d", groups,
						evaluation*every, tasks)
				}
				return nil
			}))
		}
		return hooks
	})
	wantWeights, wantLineage := evaluateEvery(t, every, tasks, 0, nil)
	if weights != wantWeights || lineage != wantLineage {
		t.Errorf("the run has lineage %s and weights %s, one whose evaluations have no share %s and %s", lineage, weights,
			wantLineage, wantWeights)
	}
}

// evaluateEvery trains twice as many steps as lie between two evaluations, and returns the weights and their lineage.
// The worker samples the groups of a step only after the step before is trained: it does not finish a batch before the
// groups of the next batch can be leased.
func evaluateEvery(t *testing.T, every, tasks int64, share float64,
	hooks func(*fixture, *evaluationLeases) []hook) (weights, lineage string) {
	t.Helper()
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed.Algorithm.Steps, f.Fixed.Algorithm.Lag, f.Concurrency = 2*every, 1, 8
		f.Fixed.Algorithm.Loss = algorithm.Loss{Name: algorithm.LossPPO,
			ClipLow: new(0.8), ClipHigh: new(1.2)}
		env := arithmetic("test", tasks, 1, 8)
		env.PassAt = []int{1}
		f.Evaluation = &contract.Evaluation{EverySteps: every, Before: true, After: true, SamplingShare: share,
			Environments: []contract.Environment{env}}
	})
	leased := &evaluationLeases{groups: map[rl.Lineage]int{}, changed: make(chan struct{})}
	var all []hook
	if hooks != nil {
		all = hooks(w, leased)
	}
	trained := make([]chan struct{}, 2*every)
	for step := range trained {
		trained[step] = make(chan struct{})
	}
	close(trained[0])
	for step := int64(1); step < 2*every; step++ {
		all = append(all, w.at("row.written", step, func(context.Context, func() error, string, int64) error {
			close(trained[step])
			return nil
		}))
	}
	w.startWorker("w0", behavior{leased: leased.add, wait: func(ctx context.Context, slot int64) {
		select {
		case <-trained[slot/slotsOfAStep]:
		case <-ctx.Done():
		}
	}})
	verdict := w.waitFor(w.startLearner(1, inOrder(all...)), contract.CauseCompleted)
	if got := *verdict.Progress.EvaluatedStep; got != 2*every {
		t.Errorf("the newest evaluation is of step %d, want %d", got, 2*every)
	}
	return w.weights(verdict), verdict.Progress.Lineage
}

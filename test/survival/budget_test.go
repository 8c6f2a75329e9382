// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestBudgetStopsARun sets a budget that the first or second step reaches. The learner stops at a saved state and
// samples at most lag + 1 batches and the evaluations in progress beyond it. With a higher budget, the run has the
// same result as a run without a budget.
func TestBudgetStopsARun(t *testing.T) {
	t.Parallel()
	byTokens := func(f *contract.RunFile, used contract.Usage) { f.Budget = &spending.Budget{Tokens: used.Total()} }
	byDollars := func(f *contract.RunFile, used contract.Usage) {
		f.Prices = &spending.Prices{Policy: spending.Price{Prompt: 100, Sampled: 200, Trained: 300}}
		f.Budget = &spending.Budget{USD: f.Prices.USD(used)}
	}
	cases := map[string]struct {
		change func(*contract.RunFile)
		limit  func(f *contract.RunFile, used contract.Usage)
		lag    int64
	}{
		"tokens":            {nil, byTokens, 0},
		"tokens with a lag": {withLag(1), byTokens, 1},
		"dollars":           {nil, byDollars, 0},
		"states are two steps apart": {func(f *contract.RunFile) {
			f.Fixed.Algorithm.Steps, f.Checkpoints.RollingEverySteps = 4, 2
		}, byTokens, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := newFixture(t, tc.change)
			undisturbed.startWorker("w0", behavior{})
			want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
			const step = 1
			// Sampling alone may reach this budget before the first step, and does so after it.
			used := contract.Usage{TrainedTokens: *undisturbed.rows()[step-1].Trained}

			w := newFixture(t, tc.change)
			tc.limit(&w.file, used)
			p := w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseDrained)
			if verdict.Reason != problem.BudgetReached || !strings.Contains(verdict.Message, "budget.") {
				t.Errorf("the verdict is %s: %s", verdict.Reason, verdict.Message)
			}
			if verdict.Progress.Step > step || len(verdict.Progress.Checkpoints) == 0 ||
				verdict.Progress.Checkpoints[0].Step != verdict.Progress.Step {
				t.Errorf("the run stopped at step %d with the checkpoints %v, want a saved state of step %d at most",
					verdict.Progress.Step, verdict.Progress.Checkpoints, step)
			}
			groups := int64(w.file.Fixed.Algorithm.TasksPerStep)
			if played, most := p.trained(), (step+tc.lag+1)*groups; played > most {
				t.Errorf("%d groups were sampled to train on, want %d at most", played, most)
			}

			w.file.Budget = &spending.Budget{Tokens: 1 << 40}
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestBudgetWithEvaluationInProgress reaches the budget in the first step, with one evaluation in progress and another
// one waiting for it. No other evaluation begins, and with a higher budget each group is sampled once.
func TestBudgetWithEvaluationInProgress(t *testing.T) {
	t.Parallel()
	each := func(f *contract.RunFile) { f.Evaluation.EverySteps = 1 }
	undisturbed := newFixture(t, each)
	undisturbed.startWorker("w0", behavior{})
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

	w := newFixture(t, each)
	w.file.Budget = &spending.Budget{Tokens: *undisturbed.rows()[0].Trained}
	groups := w.file.Evaluation.Environments[0].Splits[0].Tasks
	var leased atomic.Int64
	inProgress, stopped := make(chan struct{}), make(chan struct{})
	p := w.startWorker("w0", behavior{delayEvaluation: stopped, leased: func(lease exchange.Lease) {
		if lease.Key.Kind == rl.Evaluate && leased.Add(1) == groups {
			close(inProgress)
		}
	}})
	first := w.startLearner(1, func(ctx context.Context, kill func() error, at string, step int64) error {
		switch {
		case at == "retire.begun" && step == 1:
			select {
			case <-inProgress:
			case <-ctx.Done():
			}
		case at == "step.submitted" && step == 2:
			return kill() // The budget has not stopped the run. End it: its evaluations would wait forever.
		}
		return nil
	})
	w.waitFor(first, contract.CauseDrained)
	if got := leased.Load(); got != groups {
		t.Errorf("%d groups of evaluations were leased, want the %d of the evaluation in progress", got, groups)
	}
	if most := int64(2 * w.file.Fixed.Algorithm.TasksPerStep); p.trained() > most {
		t.Errorf("%d groups were sampled to train on, want %d at most", p.trained(), most)
	}

	close(stopped)
	w.file.Budget = nil
	w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
	w.checkSampledOnce()
}

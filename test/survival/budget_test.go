// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// TestBudgetStopsARun gives a run a budget that its first or second step reaches. The learner stops at a saved state, at most
// lag + 1 batches and the evaluations in progress are sampled beyond that, and with a higher budget the run comes to the same
// as one without.
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
			used := undisturbed.rows()[step-1].Usage

			w := newFixture(t, tc.change)
			tc.limit(&w.file, used)
			p := w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseDrained)
			if verdict.Reason != learner.ReasonBudgetReached || !strings.Contains(verdict.Message, "budget.") {
				t.Errorf("the verdict is %s: %s", verdict.Reason, verdict.Message)
			}
			if verdict.Progress.Step > step || len(verdict.Progress.Checkpoints) == 0 || verdict.Progress.Checkpoints[0].Step != verdict.Progress.Step {
				t.Errorf("the run stopped at step %d with the checkpoints %v, want a saved state of step %d at most", verdict.Progress.Step, verdict.Progress.Checkpoints, step)
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// TestUsageOverRestarts kills learners alone, so that nothing is sampled twice. Groups of later steps were accepted by
// the learner that died, and are accepted again.
func TestUsageOverRestarts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*contract.RunFile)
		deaths []int64
	}{
		"with a lag": {withLag(1), []int64{1, 2, 3, 4}},
		"states are two steps apart": {func(f *contract.RunFile) {
			f.Fixed.Algorithm.Steps, f.Checkpoints.RollingEverySteps = 5, 2
		}, []int64{2, 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := newFixture(t, tc.change)
			undisturbed.startWorker("w0", behavior{})
			want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
			undisturbed.checkSpentExactly(want.usage)
			if want.usage.PromptTokens == 0 || want.usage.SampledTokens == 0 || want.usage.TrainedTokens == 0 ||
				want.usage.BoughtTwiceTokens != 0 {
				t.Errorf("the undisturbed run used %+v, want tokens of each kind and none that were bought twice", want.usage)
			}
			w := newFixture(t, tc.change)
			// The barrier of most learners is over before the worker dials again.
			w.barrier = time.Millisecond
			p := w.startWorker("w0", behavior{})
			for i, step := range tc.deaths {
				<-w.startLearner(int32(i+1), w.dieAt("row.written", step)).done
			}
			verdict := w.waitFor(w.startLearner(int32(len(tc.deaths)+1), nil), contract.CauseCompleted)
			w.compare(verdict, want)
			got := w.outcome(verdict)
			w.checkSpentExactly(got.usage)
			if got.usage.UnconfirmedTokens != 0 {
				t.Errorf("%d tokens are unconfirmed, want none", got.usage.UnconfirmedTokens)
			}
			if n := p.sampledTwice(); n != 0 {
				t.Errorf("%d groups were sampled twice", n)
			}
			// Each of the steps up to the last death was lost once.
			lost := undisturbed.rows()[tc.deaths[len(tc.deaths)-1]-1].Trained
			if got.usage.BoughtTwiceTokens != *lost || *lost == 0 {
				t.Errorf("%d tokens were bought twice, want %d", got.usage.BoughtTwiceTokens, *lost)
			}
		})
	}
}

// checkSpentExactly requires that the run has reported each token that the simulator billed, by kind.
func (w *fixture) checkSpentExactly(used contract.Usage) {
	w.t.Helper()
	billed := w.sim.Stats().Billed
	got := stats.Billed{
		PromptTokens: used.PromptTokens, SampledTokens: used.SampledTokens,
		ForwardBackwardTokens: used.TrainedTokens - billed.ForwardTokens, ForwardTokens: billed.ForwardTokens,
	}
	// The usage counts the tokens of both kinds of passes together.
	if diff := cmp.Diff(billed, got); diff != "" {
		w.t.Errorf("tokens (-billed +reported):\n%s", diff)
	}
}

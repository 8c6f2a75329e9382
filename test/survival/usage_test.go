// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestUsageOverRestarts kills learners alone, so that nothing is sampled twice. Groups of later steps were accepted by
// the learner that died, and are accepted again.
func TestUsageOverRestarts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*contract.RunFile){
		"with a lag": withLag(1),
		"states are two steps apart": func(f *contract.RunFile) {
			f.Fixed.Algorithm.Steps, f.Checkpoints.RollingEverySteps = 5, 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := newFixture(t, change)
			undisturbed.startWorker("w0", behavior{})
			quiet := undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted)
			want := undisturbed.outcome(quiet)
			if want.usage.PromptTokens == 0 || want.usage.SampledTokens == 0 || want.usage.TrainedTokens == 0 {
				t.Errorf("the undisturbed run used %+v", want.usage)
			}
			if got := quiet.Progress.Usage.BoughtTwiceTokens; got != 0 {
				t.Errorf("the undisturbed run bought %d tokens twice", got)
			}
			w := newFixture(t, change)
			p := w.startWorker("w0", behavior{})
			for i, step := range []int64{1, 2, 3, 4} {
				<-w.startLearner(int32(i+1), w.dieAt("step.measured", step)).done
			}
			verdict := w.waitFor(w.startLearner(5, nil), contract.CauseCompleted)
			w.compare(verdict, want)
			if n, tokens := p.sampledTwice(), verdict.Progress.Usage.BoughtTwiceTokens; n != 0 || tokens > want.usage.TrainedTokens {
				t.Errorf("%d groups were sampled twice, and %d tokens bought twice", n, tokens)
			}
		})
	}
}

// TestUsageOfStepsMadeTwice has a learner die after it wrote the row of a step, whose state it did not save.
func TestUsageOfStepsMadeTwice(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("row.written", 2)).done
	verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	w.checkSame(verdict)
	rows := w.rows()
	want := rows[1].Usage.TrainedTokens - rows[0].Usage.TrainedTokens
	if got := verdict.Progress.Usage.BoughtTwiceTokens; got != want || want == 0 {
		t.Errorf("%d tokens were bought twice, want the %d that step 2 trained on", got, want)
	}
}

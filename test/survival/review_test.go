// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// T9: usage over a restart with a lag.
func TestReviewUsageOverRestart(t *testing.T) {
	t.Skip("finding not repaired yet: learner B2")
	w := newFixture(t, func(f *contract.RunFile) { withLag(1)(f); f.Evaluation = nil })
	w.startWorker("w0", behavior{})
	quiet := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted).Progress.Usage
	w = newFixture(t, func(f *contract.RunFile) { withLag(1)(f); f.Evaluation = nil })
	p := w.startWorker("w0", behavior{})
	for i, step := range []int64{1, 2, 3, 4} {
		<-w.startLearner(int32(i+1), w.dieAt("covered.sent", step)).done
	}
	struck := w.waitFor(w.startLearner(5, nil), contract.CauseCompleted).Progress.Usage
	t.Logf("sampled tokens: %d undisturbed, %d after four deaths of the learner alone; groups bought twice: %d, said to be: %d",
		quiet.SampledTokens, struck.SampledTokens, p.sampledTwice(), struck.BoughtTwiceTokens)
}

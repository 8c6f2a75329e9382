// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

func TestReviewPolicyGoneBaseline(t *testing.T) {
	t.Skip("finding not repaired yet: learner B6")
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.startWorker("w0", behavior{delay: nil})
	<-w.startLearner(1, nil).done
	t.Logf("models made by an undisturbed run: %d", w.models())
	for _, n := range []int{1, 2} {
		w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
		w.startWorker("w0", behavior{})
		for i := range n {
			w.addFaults(fault.Rule{Op: "forward_backward", Occurrence: 2 + i, Do: fault.Fail, Category: "server"})
		}
		<-w.startLearner(1, nil).done
		t.Logf("models made with %d thrown away: %d", n, w.models())
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// T2: one spurious refusal every third step of twelve; each is overcome.
func TestReviewFourSpuriousRefusals(t *testing.T) {
	t.Skip("finding not repaired yet: learner A2")
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = 14; f.Evaluation = nil })
	w.startWorker("w0", behavior{})
	a := w.startLearner(1, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "covered.sent" && step%3 == 0 {
			w.addFaults(fault.Rule{Op: "forward_backward", Do: fault.Fail, Category: "user"})
		}
		return nil
	})
	<-a.done
	t.Logf("verdict %s %s at step %d of 14: %s", a.verdict.Cause, a.verdict.Reason, a.verdict.Progress.Step, a.verdict.Message)
}

// T10 again: the groups are halved until the innocent stands alone.
func TestReviewBisectCondemnsTheInnocent2(t *testing.T) {
	t.Skip("finding not repaired yet: learner B10")
	for _, empty := range []int64{4, 6, 7} {
		w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
		w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
			switch g.Key.Slot {
			case 5:
				g.Members[1].Segments[0].Tokens[0] = 1 << 20
			case empty:
				for i := range g.Members {
					g.Members[i].Segments = nil
				}
			}
			return g
		}})
		a := w.startLearner(1, nil)
		<-a.done
		for _, row := range w.rows() {
			for _, s := range row.Manifest {
				if s.Slot == 5 || s.Slot == empty {
					t.Logf("empty %d: slot %d of step %d: %s (%s)", empty, s.Slot, row.Step, s.Outcome, a.verdict.Cause)
				}
			}
		}
	}
}

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

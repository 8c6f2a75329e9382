// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestServerFaults injects faults into single operations; one learner and one worker complete the run.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	cases := map[string][]fault.Rule{
		"forward_backward fails": {{Op: "forward_backward", Occurrence: 2, Do: fault.Fail,
			Category: "server"}},
		"forward_backward fails, but was done": {{Op: "forward_backward", Occurrence: 2, Do: fault.Fail, Stage: fault.Reply,
			Category: "unknown"}},
		"optim_step fails": {{Op: "optim_step", Occurrence: 2, Do: fault.Fail, Category: "server"}},
		"optim_step fails, but was done": {{Op: "optim_step", Occurrence: 2, Do: fault.Fail, Stage: fault.Reply,
			Category: "server"}},
		"a state's save fails": {{Op: "save_weights", Occurrence: 3, Do: fault.Fail, Category: "server"}},
		"a state's save fails, but was done": {{Op: "save_weights", Occurrence: 3, Do: fault.Fail, Stage: fault.Reply,
			Category: "server"}},
		"a sampler's save fails": {{Op: "save_weights_for_sampler", Occurrence: 2, Do: fault.Fail,
			Category: "server"}},
		"the opening state's save fails": {{Op: "save_weights", Do: fault.Fail, Category: "server"}},
		"create_model fails":             {{Op: "create_model", Do: fault.Fail, Category: "server"}},
		"answers to optim_step are lost": {{Op: "optim_step", Occurrence: 2, Do: fault.DropAnswer},
			{Op: "optim_step", Occurrence: 4, Do: fault.DropRequest}},
		"answers to submits are lost": {{Op: "save_weights", Occurrence: 2, Do: fault.DropAnswer},
			{Op: "forward_backward", Occurrence: 2, Do: fault.DropAnswer}},
		"the future of forward_backward is lost": {{Op: "forward_backward", Occurrence: 2, Do: fault.LoseFuture}},
		"the future of optim_step is lost":       {{Op: "optim_step", Occurrence: 3, Do: fault.LoseFuture}},
		"the future of a save is lost":           {{Op: "save_weights", Occurrence: 3, Do: fault.LoseFuture}},
		"the future of the last save is lost":    {{Op: "save_weights", Occurrence: 4, Do: fault.LoseFuture}},
		"the future of a sampler's save is lost": {{Op: "save_weights_for_sampler", Occurrence: 2, Do: fault.LoseFuture}},
		"futures of samples are lost":            {{Op: "asample", Occurrence: 5, Count: 7, Do: fault.LoseFuture}},
		"samples fail": {{Op: "asample", Occurrence: 9, Count: 5, Do: fault.Fail,
			Category: "server"}},
		"samples are throttled": {{Op: "asample", Occurrence: 9, Count: 3, Do: fault.Refuse, Status: 429,
			RetryAfterSeconds: 0.05}},
		"steps are throttled": {{Op: "optim_step", Occurrence: 2, Count: 2, Do: fault.Refuse, Status: 429,
			RetryAfterSeconds: 0.05}},
		"a step is paused": {{Op: "optim_step", Occurrence: 2, Do: fault.Pause, Seconds: 0.3, QueueState: "paused_capacity"}},
	}
	want := baseline(t)
	for name, rules := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.addFaults(rules...)
			w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			w.compare(verdict, want)
		})
	}
}

// TestDeathBeforeFailedChunkIsSeen fails a pass or an optimizer step, and kills the learner before it receives the
// failure.
func TestDeathBeforeFailedChunkIsSeen(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for name, op := range map[string]string{"the pass": "forward_backward", "the optimizer step": "optim_step"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.addFaults(fault.Rule{Op: op, Occurrence: 2, Do: fault.Fail, Category: "server"})
			w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt("step.submitted", 2)).done
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestSaveLandsAfterLearnerDeath holds a save at the server until its learner has died and the next attempts continue.
func TestSaveLandsAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.addFaults(fault.Rule{ID: "late", Op: "save_weights", Occurrence: 3, Do: fault.Hold})
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("save.submitted", 2)).done
	<-w.startLearner(2, w.dieAt("save.answered", 2)).done
	if err := w.sim.Faults().Release("late"); err != nil {
		t.Fatal(err)
	}
	w.checkSame(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted))
}

// TestSaveLandsAfterItsStepIsRedone executes the save of one model after another model of the same attempt has made its
// step again.
func TestSaveLandsAfterItsStepIsRedone(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.addFaults(
		fault.Rule{ID: "late", Op: "save_weights", Occurrence: 3, Do: fault.Hold},
		fault.Rule{Op: "save_weights", Occurrence: 3, Do: fault.LoseFuture},
	)
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("claim.looked", 3)).done
	if err := w.sim.Faults().Release("late"); err != nil {
		t.Fatal(err)
	}
	w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
}

// TestServerRestart restarts the server at several points: it forgets models, sessions and futures.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range []string{"open.saved", "step.submitted", "replies.clean", "sampler.announced", "row.written",
		"save.submitted", "covered.sent"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.startWorker("w0", behavior{})
			step := int64(2)
			if point == "open.saved" {
				step = -1
			}
			restarted := false
			verdict := w.waitFor(w.startLearner(1, w.at(point, step, func(context.Context, func() error, string, int64) error {
				if restarted {
					return nil
				}
				restarted = true
				return w.sim.Restart()
			})), contract.CauseCompleted)
			w.compare(verdict, want)
		})
	}
}

// TestLostSamplerCostsOneModel loses sampler weights while groups are sampled, which end one after the other.
func TestLostSamplerCostsOneModel(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.startWorker("w0", behavior{delay: func(slot int64) time.Duration {
		return time.Duration(slot%4) * 40 * time.Millisecond
	}})
	w.addFaults(fault.Rule{Op: "create_sampling_session", Name: "s000001.*a001m1-", Do: fault.Missing, Count: -1})
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	// Only one model is made after the first: it loads a state that this learner saved, so its optimizer is not checked
	// again.
	if n := w.models(); n != 2 {
		t.Errorf("%d models were made, want 2", n)
	}
	if n := len(verdict.Progress.Checkpoints); n == 0 {
		t.Error("the verdict names no state")
	}
}

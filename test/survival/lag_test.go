// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// withLag makes the small run off-policy, and two steps longer.
func withLag(lag int) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		f.Fixed.Algorithm.Lag, f.Fixed.Algorithm.Steps = int32(lag), 5
		f.Fixed.Algorithm.Loss = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
	}
}

func baselineWithLag(t *testing.T, lag int, b behavior) outcome {
	t.Helper()
	w := newFixture(t, withLag(lag))
	w.startWorker("w0", b)
	return w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
}

func TestLagAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{1, 2} {
		want := baselineWithLag(t, lag, behavior{})
		for _, point := range []string{"open.saved", "step.submitted", "replies.clean", "sampler.announced", "row.written",
			"save.answered", "covered.sent", "retire.before"} {
			for name, workerDies := range killed {
				t.Run(fmt.Sprintf("lag %d, %s, %s", lag, point, name), func(t *testing.T) {
					t.Parallel()
					w := newFixture(t, withLag(lag))
					worker := w.startWorker("w0", behavior{})
					step := int64(3)
					if point == "open.saved" {
						step = -1
					}
					<-w.startLearner(1, w.dieAt(point, step)).done
					if workerDies {
						worker.kill()
						w.startWorker("w1", behavior{})
					}
					w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
				})
			}
		}
	}
}

// TestLagWithFilteredGroup drops slots that finish later than the slots behind them.
func TestLagWithFilteredGroup(t *testing.T) {
	t.Parallel()
	dropped := func(slot int64) rl.Outcome {
		if slot == 3 || slot == 9 {
			return rl.Constant
		}
		return rl.Usable
	}
	want := baselineWithLag(t, 1, behavior{outcome: dropped})
	w := newFixture(t, withLag(1))
	late := func(slot int64) time.Duration {
		if slot == 3 || slot == 8 || slot == 9 {
			return 60 * time.Millisecond
		}
		return 0
	}
	w.startWorker("w0", behavior{outcome: dropped, delay: late})
	w.startWorker("w1", behavior{outcome: dropped})
	w.startWorker("w2", behavior{outcome: dropped, delay: late})
	w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
}

// TestLagWithExpiredSampler checks that the learner makes the sampler of version k-1 again from its state.
func TestLagWithExpiredSampler(t *testing.T) {
	t.Parallel()
	want := baselineWithLag(t, 1, behavior{})
	w := newFixture(t, withLag(1))
	worker := w.startWorker("w0", behavior{})
	first := w.startLearner(1, w.at("retire.before", 3, func(ctx context.Context, kill func() error, _ string,
		_ int64) error {
		for c, err := range w.client.Checkpoints(ctx) {
			if err != nil {
				return err
			}
			if c.CheckpointType == "sampler" && strings.Contains(c.TinkerPath, "s000002") {
				if err := w.client.DeleteCheckpoint(ctx, c.TinkerPath); err != nil {
					return err
				}
			}
		}
		return kill()
	}))
	<-first.done
	worker.kill()
	w.startWorker("w1", behavior{})
	w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
}

// TestLagWithLostVersion loses a version, so that the next newer one is sampled instead.
func TestLagWithLostVersion(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withLag(1))
	worker := w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("retire.before", 3)).done
	worker.kill()
	for c, err := range w.client.Checkpoints(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c.TinkerPath, "s000002") {
			if err := w.client.DeleteCheckpoint(t.Context(), c.TinkerPath); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.startWorker("w1", behavior{})
	if verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted); verdict.Progress.LostVersions != 1 {
		t.Errorf("%d versions are reported as lost, want 1", verdict.Progress.LostVersions)
	}
	w.checkMetrics()
}

// TestLagWithFailedModels fails models in the middle of a run.
func TestLagWithFailedModels(t *testing.T) {
	t.Parallel()
	want := baselineWithLag(t, 2, behavior{})
	w := newFixture(t, withLag(2))
	w.addFaults(
		fault.Rule{Op: "optim_step", Occurrence: 3, Do: fault.Fail, Category: "server"},
		fault.Rule{Op: "save_weights", Occurrence: 7, Do: fault.LoseFuture},
		fault.Rule{Op: "forward_backward", Occurrence: 6, Do: fault.LoseFuture},
	)
	w.startWorker("w0", behavior{})
	w.startWorker("w1", behavior{})
	w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
}

// TestGSPOWithLag trains on older samples with the ratio of sequences: the weights differ from the weights with the
// ratio of tokens, and are the same after a death.
func TestGSPOWithLag(t *testing.T) {
	t.Parallel()
	gspo := func(f *contract.RunFile) {
		withLag(1)(f)
		f.Fixed.Algorithm.Loss.Name = algorithm.LossGSPO
		f.Fixed.Algorithm.Optimizer.LearningRate *= 10 // so that ratios differ from 1
	}
	ppo := func(f *contract.RunFile) {
		gspo(f)
		f.Fixed.Algorithm.Loss.Name = algorithm.LossPPO
	}
	outcomeOf := func(change func(*contract.RunFile)) outcome {
		w := newFixture(t, change)
		w.startWorker("w0", behavior{})
		return w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	}
	want := outcomeOf(gspo)
	if other := outcomeOf(ppo); other.adapter == want.adapter {
		t.Errorf("the weights equal the weights of the loss PPO: got %v for both", other.adapter)
	}
	for _, point := range []string{"step.submitted", "row.written", "save.answered"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, gspo)
			w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt(point, 3)).done
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

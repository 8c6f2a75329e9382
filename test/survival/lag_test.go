// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// lagging is the small run off-policy, two steps longer.
func lagging(lag int) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		f.Fixed.Algorithm.Lag, f.Fixed.Algorithm.Steps = lag, 5
		f.Fixed.Algorithm.Loss = contract.Loss{Name: "ppo", Config: map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}}
	}
}

func lagBaseline(t *testing.T, lag int, ways ways) string {
	t.Helper()
	w := newWorld(t, lagging(lag))
	w.play("w0", ways)
	digest := w.weights(w.end(w.learn(1, nil), contract.CauseCompleted))
	w.checkMetrics()
	return digest
}

func TestLagSurvivesDeaths(t *testing.T) {
	for _, lag := range []int{1, 2} {
		want := lagBaseline(t, lag, ways{})
		for _, point := range []string{"open.saved", "step.submitted", "replies.clean", "sampler.announced", "row.written", "save.answered", "covered.sent", "retire.before"} {
			for name, workerDies := range whoDies {
				t.Run(fmt.Sprintf("lag %d, %s, %s", lag, point, name), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, lagging(lag))
					worker := w.play("w0", ways{})
					step := int64(3)
					if point == "open.saved" {
						step = -1
					}
					<-w.learn(1, w.dieAt(point, step)).done
					if workerDies {
						worker.kill()
						w.play("w1", ways{})
					}
					if got := w.weights(w.end(w.learn(2, nil), contract.CauseCompleted)); got != want {
						t.Errorf("final adapter is %s, undisturbed %s", got, want)
					}
					w.checkMetrics()
				})
			}
		}
	}
}

// TestLagWithAFilteredGroup is trace (d): a slot is dropped, and its successor finishes first.
func TestLagWithAFilteredGroup(t *testing.T) {
	dropped := func(slot int64) rl.Outcome {
		if slot == 3 || slot == 9 {
			return rl.Constant
		}
		return rl.Usable
	}
	want := lagBaseline(t, 1, ways{flaw: dropped})
	w := newWorld(t, lagging(1))
	late := func(slot int64) time.Duration {
		if slot == 3 || slot == 8 || slot == 9 {
			return 60 * time.Millisecond
		}
		return 0
	}
	w.play("w0", ways{flaw: dropped, slow: late})
	w.play("w1", ways{flaw: dropped})
	w.play("w2", ways{flaw: dropped, slow: late})
	if got := w.weights(w.end(w.learn(1, nil), contract.CauseCompleted)); got != want {
		t.Errorf("final adapter is %s, undisturbed %s", got, want)
	}
}

// TestLagWithAnExpiredSampler makes the sampler of version k-1 again from its state.
func TestLagWithAnExpiredSampler(t *testing.T) {
	want := lagBaseline(t, 1, ways{})
	w := newWorld(t, lagging(1))
	worker := w.play("w0", ways{})
	first := w.learn(1, func(ctx context.Context, kill func() error, point string, step int64) error {
		if point != "retire.before" || step != 3 {
			return nil
		}
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
	})
	<-first.done
	worker.kill()
	w.play("w1", ways{})
	if got := w.weights(w.end(w.learn(2, nil), contract.CauseCompleted)); got != want {
		t.Errorf("final adapter is %s, undisturbed %s", got, want)
	}
	w.checkMetrics()
}

// TestLagWithAVersionLostForGood goes on with the next newer one.
func TestLagWithAVersionLostForGood(t *testing.T) {
	w := newWorld(t, lagging(1))
	worker := w.play("w0", ways{})
	<-w.learn(1, w.dieAt("retire.before", 3)).done
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
	w.play("w1", ways{})
	if verdict := w.end(w.learn(2, nil), contract.CauseCompleted); verdict.Progress.LostVersions != 1 {
		t.Errorf("%d versions are said to be lost, want 1", verdict.Progress.LostVersions)
	}
	w.checkMetrics()
}

// TestLagWithPoisonedModels throws models away in the middle.
func TestLagWithPoisonedModels(t *testing.T) {
	want := lagBaseline(t, 2, ways{})
	w := newWorld(t, lagging(2))
	w.script(
		fault.Rule{Op: "optim_step", Occurrence: 3, Do: fault.Fail, Category: "server"},
		fault.Rule{Op: "save_weights", Occurrence: 7, Do: fault.LoseFuture},
		fault.Rule{Op: "forward_backward", Occurrence: 6, Do: fault.LoseFuture},
	)
	w.play("w0", ways{})
	w.play("w1", ways{})
	if got := w.weights(w.end(w.learn(1, nil), contract.CauseCompleted)); got != want {
		t.Errorf("final adapter is %s, undisturbed %s", got, want)
	}
	w.checkMetrics()
}

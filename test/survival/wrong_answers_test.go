// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// once calls a function when a learner first passes a fault point of a step.
func once(point string, step int64, do func()) hook {
	var first sync.Once
	return func(_ context.Context, _ func() error, at string, now int64) error {
		if at == point && now == step {
			first.Do(do)
		}
		return nil
	}
}

// TestRefusedSamplesOfATrainedVersion refuses three tries of each of the 16 episodes of a batch, once two steps have
// been trained.
func TestRefusedSamplesOfATrainedVersion(t *testing.T) {
	t.Parallel()
	change := func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = 4 }
	quiet := newFixture(t, change)
	quiet.startRolloutWorker("w0")
	want := quiet.outcome(quiet.waitFor(quiet.startLearner(1, nil), contract.CauseCompleted))
	for _, status := range []int{400, 404, 405, 413, 418, 422, 501} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, change)
			w.startRolloutWorker("w0")
			w.compare(w.waitFor(w.startLearner(1, once("replies.clean", 2, func() {
				w.addFaults(fault.Rule{Op: "asample", Do: fault.Refuse, Status: status, Count: 48, Message: "temporarily invalid"})
			})), contract.CauseCompleted), want)
		})
	}
}

// TestRefusedPolls refuses one poll, which costs neither a model nor a sample.
func TestRefusedPolls(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 405, 413, 422} {
		for _, point := range []string{"sampler.announced", "step.submitted"} {
			t.Run(fmt.Sprint(status, " after ", point), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, nil)
				w.startRolloutWorker("w0")
				w.waitFor(w.startLearner(1, once(point, 2, func() {
					w.addFaults(fault.Rule{Op: "retrieve_future", Do: fault.Refuse, Status: status, Message: "bad request"})
				})), contract.CauseCompleted)
				calls := w.sim.Stats().Calls
				if calls["create_model"] != 1 || calls["forward"] != 0 || calls["optim_step"] != 3 || calls["asample"] != 60 {
					t.Errorf("calls: %v, want 1 create_model, no forward, 3 optim_step and 60 asample", calls)
				}
			})
		}
	}
}

// TestMissingOlderVersion replaces a worker in a run with a lag. The new worker is answered with 404 when it opens the
// older version, although its sampler weights exist, once or for a while.
func TestMissingOlderVersion(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, 3} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withLag(1))
			w.silence = 2 * time.Second
			blocked := behavior{wait: func(ctx context.Context, slot int64) {
				if slot/slotsOfAStep == 2 {
					<-ctx.Done()
				}
			}}
			worker := w.startWorker("w0", blocked)
			w.waitFor(w.startLearner(1, once("covered.sent", 2, func() {
				w.addFaults(fault.Rule{Op: "create_sampling_session", Name: "s000001", Do: fault.Missing, Count: times})
				worker.kill()
				w.startRolloutWorker("w1")
			})), contract.CauseCompleted)
			// Each answer costs the model that is opened again, and the one that saves the sampler weights again.
			if made, most := w.models(), int64(1+2*times); made > most {
				t.Errorf("%d models were made for %d answers, want %d at most", made, times, most)
			}
		})
	}
}

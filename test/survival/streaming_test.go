// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// streamingFixture is a run whose endpoint takes three sequences a request, so that a step has six requests, and groups of four
// sequences are divided between them. The last group of each batch of four is sampled only when a part of the step was submitted.
type streamingFixture struct {
	*fixture
	mu sync.Mutex
	// streamed has a channel for each step, which is closed when the step passes the fault point step.streamed.
	streamed map[int64]chan struct{}
	// passed counts how often each step passes it: once more than requests were submitted early.
	passed map[int64]int
}

func newStreamingFixture(t *testing.T, change func(*contract.RunFile)) *streamingFixture {
	t.Helper()
	config := tinker.DefaultServerConfig()
	config.ParallelChunks, config.UsePyqwestTransport, config.MaxChunkLen = false, false, 3
	options := tinkersim.Options{SessionTimeout: time.Minute, GapPatience: 20 * time.Millisecond, Config: &config}
	return &streamingFixture{fixture: newFixtureOn(t, options, change), streamed: map[int64]chan struct{}{}, passed: map[int64]int{}}
}

// of returns the channel of a step. The lock is held.
func (w *streamingFixture) of(step int64) chan struct{} {
	if w.streamed[step] == nil {
		w.streamed[step] = make(chan struct{})
	}
	return w.streamed[step]
}

// release is a hook that lets the last group of a step be sampled once a part of the step was submitted.
func (w *streamingFixture) release(_ context.Context, _ func() error, point string, step int64) error {
	if point != "step.streamed" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed[step]++
	if released := w.of(step); !isClosed(released) {
		close(released)
	}
	return nil
}

// lastWaits is the behavior of a worker.
func (w *streamingFixture) lastWaits() behavior {
	const groups = 4
	return behavior{wait: func(ctx context.Context, slot int64) {
		if slot%groups != groups-1 {
			return
		}
		w.mu.Lock()
		released := w.of(slot/groups + 1)
		w.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
		}
	}}
}

// wantStreamed requires of the steps from the second on that a part of each was submitted early, or that none was.
func (w *streamingFixture) wantStreamed(want bool) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for step := int64(2); step <= w.file.Fixed.Algorithm.Steps; step++ {
		if got := w.passed[step] > 1; got != want {
			w.t.Errorf("a part of step %d was submitted early: %v, want %v", step, got, want)
		}
	}
}

// unstreamed is the outcome of a run in which no step but the first is streamed, because states are saved at the end only.
func unstreamed(t *testing.T, lag int, b behavior) outcome {
	t.Helper()
	w := newStreamingFixture(t, func(f *contract.RunFile) {
		withLag(lag)(f)
		f.Checkpoints.RollingEverySteps = 10
	})
	w.startWorker("w0", b)
	verdict := w.waitFor(w.startLearner(1, w.release), contract.CauseCompleted)
	w.wantStreamed(false)
	return w.outcome(verdict)
}

// unstreamedRuns are the outcomes of unstreamed by lag, for groups that are all usable.
var unstreamedRuns [2]struct {
	once    sync.Once
	outcome outcome
}

// unstreamedBaseline makes such a run once for all tests.
func unstreamedBaseline(t *testing.T, lag int) outcome {
	t.Helper()
	run := &unstreamedRuns[lag]
	run.once.Do(func() { run.outcome = unstreamed(t, lag, behavior{}) })
	if run.outcome.adapter == "" {
		t.Fatal("the run whose steps are not streamed failed")
	}
	return run.outcome
}

// TestStreamedStepsHaveTheSameWeights compares steps whose first requests are submitted while the last group is missing with steps
// that are submitted as a whole.
func TestStreamedStepsHaveTheSameWeights(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{0, 1} {
		t.Run(fmt.Sprintf("lag %d", lag), func(t *testing.T) {
			t.Parallel()
			w := newStreamingFixture(t, withLag(lag))
			w.startWorker("w0", w.lastWaits())
			verdict := w.waitFor(w.startLearner(1, w.release), contract.CauseCompleted)
			w.wantStreamed(true)
			w.compare(verdict, unstreamedBaseline(t, lag))
		})
	}
}

// TestDeathInAStreamedStep kills the learner when its model holds the gradient of a part of a step.
func TestDeathInAStreamedStep(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{0, 1} {
		want := unstreamedBaseline(t, lag)
		for name, workerDies := range killed {
			t.Run(fmt.Sprintf("lag %d, %s", lag, name), func(t *testing.T) {
				t.Parallel()
				w := newStreamingFixture(t, withLag(lag))
				worker := w.startWorker("w0", w.lastWaits())
				<-w.startLearner(1, inOrder(w.dieAt("step.streamed", 3), w.release)).done
				if workerDies {
					worker.kill()
					w.startWorker("w1", w.lastWaits())
				}
				w.compare(w.waitFor(w.startLearner(2, w.release), contract.CauseCompleted), want)
				if !workerDies && worker.sampledTwice() > 0 {
					t.Errorf("the worker was not killed, and %d groups were bought twice", worker.sampledTwice())
				}
			})
		}
	}
}

// TestFailureOfAStreamedRequest fails a request that was submitted early, or loses its reply: the step is made again with another
// model.
func TestFailureOfAStreamedRequest(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{0, 1} {
		want := unstreamedBaseline(t, lag)
		for name, rule := range map[string]fault.Rule{
			"failed":      {Op: state.OpForwardBackward, Do: fault.Fail},
			"lost reply":  {Op: state.OpForwardBackward, Do: fault.LoseFuture},
			"lost answer": {Op: state.OpForwardBackward, Do: fault.DropAnswer},
		} {
			t.Run(fmt.Sprintf("lag %d, %s", lag, name), func(t *testing.T) {
				t.Parallel()
				w := newStreamingFixture(t, withLag(lag))
				rule.Occurrence = 14 // This is the second of the six requests of the third step.
				w.addFaults(rule)
				w.startWorker("w0", w.lastWaits())
				w.compare(w.waitFor(w.startLearner(1, w.release), contract.CauseCompleted), want)
			})
		}
	}
}

// TestServerRestartInAStreamedStep restarts the server, which loses the model with the gradient of a part of a step.
func TestServerRestartInAStreamedStep(t *testing.T) {
	t.Parallel()
	w := newStreamingFixture(t, withLag(0))
	w.startWorker("w0", w.lastWaits())
	restart := sync.OnceValue(func() error { return w.sim.Restart() })
	hook := inOrder(w.at("step.streamed", 3, func(context.Context, func() error, string, int64) error { return restart() }), w.release)
	w.compareWeights(w.waitFor(w.startLearner(1, hook), contract.CauseCompleted), unstreamedBaseline(t, 0))
}

// TestDataRefusedInAStreamedRequest has the endpoint refuse a group whose data are submitted early: the group becomes a
// tombstone, and the run is the one in which it always was.
func TestDataRefusedInAStreamedRequest(t *testing.T) {
	t.Parallel()
	const slot = 5
	want := unstreamed(t, 0, behavior{outcome: func(at int64) rl.Outcome {
		if at == slot {
			return rl.InvalidTokens
		}
		return rl.Usable
	}})
	for name, transport := range map[string]http.RoundTripper{"at submit": strictEndpoint{http.StatusBadRequest}, "by its reply": http.DefaultTransport} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStreamingFixture(t, withLag(0))
			w.http = &http.Client{Transport: transport}
			b := w.lastWaits()
			b.change = func(g rl.Group) rl.Group {
				if g.Key.Kind == rl.Train && g.Key.Slot == slot {
					g.Members[1].Trajectories[0].Segments[0].Tokens[0] = invalidToken
				}
				return g
			}
			w.startWorker("w0", b)
			w.compareWeights(w.waitFor(w.startLearner(1, w.release), contract.CauseCompleted), want)
			w.wantStreamed(true)
		})
	}
}

// TestDrainInAStreamedStep has the learner stop when its model holds the gradient of a part of a step, while the last
// group is missing: the state before that step is the newest, and nothing is lost.
func TestDrainInAStreamedStep(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{0, 1} {
		t.Run(fmt.Sprintf("lag %d", lag), func(t *testing.T) {
			t.Parallel()
			want := unstreamedBaseline(t, lag)
			w := newStreamingFixture(t, withLag(lag))
			worker := w.startWorker("w0", w.lastWaits())
			var a *attempt
			started := make(chan struct{})
			a = w.startLearner(1, func(ctx context.Context, kill func() error, point string, step int64) error {
				if point != "step.streamed" || step != 3 {
					return w.release(ctx, kill, point, step)
				}
				<-started
				a.drain()
				return nil
			})
			close(started)
			if saved := w.waitFor(a, contract.CauseDrained).Progress.Step; saved != 2 {
				t.Errorf("the learner ended at step %d, want step 2", saved)
			}
			worker.kill()
			w.startWorker("w1", w.lastWaits())
			w.compare(w.waitFor(w.startLearner(2, w.release), contract.CauseCompleted), want)
		})
	}
}

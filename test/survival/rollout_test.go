// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// startRolloutWorker starts a real rollout worker and returns a function that ends it abruptly.
func (w *fixture) startRolloutWorker(name string) (kill func()) {
	w.t.Helper()
	return w.startRolloutWorkerOf(name, nil)
}

// startRolloutWorkerOf starts a worker with the builder's environments; nil means the real builder.
func (w *fixture) startRolloutWorkerOf(name string, environments rollout.Builder) (kill func()) {
	w.t.Helper()
	return w.startRolloutWorkerWith(name, func(c *rollout.Config) { c.Environments = environments })
}

// startRolloutWorkerWith starts a worker with a configuration that change alters.
func (w *fixture) startRolloutWorkerWith(name string, change func(*rollout.Config)) (kill func()) {
	w.t.Helper()
	return w.startRolloutWorkerBy(name, nil, change)
}

// startRolloutWorkerBy starts a worker that calls the simulator through a transport; nil means the default transport.
func (w *fixture) startRolloutWorkerBy(name string, transport http.RoundTripper,
	change func(*rollout.Config)) (kill func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	meter := client.NewMeter(client.MeterConfig{Lifetime: ctx})
	spending := rollout.NewSpending(meter)
	learner, err := exchange.NewClient(exchange.ClientConfig{
		Address: w.file.LearnerAddress, Credentials: w.credentials, RunUID: w.file.Run.UID, SpecDigest: w.file.SpecDigest,
		Version: w.file.Version, Worker: name, Spent: spending.Spent, Logger: w.logger(), Dial: w.dial,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	pressure := &rollout.Pressure{}
	endpoint, err := client.New(client.Config{
		BaseURL: cmp.Or(w.front, w.url), APIKey: cmp.Or(w.key, apiKey), HTTP: httpBy(transport),
		Observe: pressure.Observe, Meter: meter,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	keep, err := groupstore.Open(groupstore.Config{Dir: w.t.TempDir(), Version: w.file.Version, MemoryBytes: 1 << 24,
		DiskBytes: 1 << 24, Logger: w.logger()})
	if err != nil {
		w.t.Fatal(err)
	}
	config := rollout.Config{Learner: learner, Endpoint: endpoint, Groups: keep, Pressure: pressure, Spending: spending,
		Logger: w.logger()}
	change(&config)
	worker := rollout.New(config)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := worker.Run(ctx)
		w.mu.Lock()
		if w.ended == nil {
			w.ended = map[string]error{}
		}
		w.ended[name] = err
		w.mu.Unlock()
		_ = learner.Close()
	}()
	kill = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(kill)
	return kill
}

// httpBy returns an HTTP client that uses a transport. It returns nil, which means the default client, if the
// transport is nil.
func httpBy(transport http.RoundTripper) *http.Client {
	if transport == nil {
		return nil
	}
	return &http.Client{Transport: transport}
}

// TestRolloutWorkers runs the real environment with several workers, and kills learners and workers.
func TestRolloutWorkers(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startRolloutWorker("w0")
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	for _, workers := range []int{2, 4} {
		t.Run(fmt.Sprintf("%d workers without faults", workers), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			for i := range workers {
				w.startRolloutWorker(fmt.Sprintf("w%d", i))
			}
			w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
		})
	}
	for _, point := range []string{"open.saved", "step.submitted", "sampler.announced", "save.answered", "covered.sent"} {
		for name, workerDies := range killed {
			t.Run(point+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, nil)
				kill := w.startRolloutWorker("w0")
				w.startRolloutWorker("w1")
				step := int64(2)
				if point == "open.saved" {
					step = -1
				}
				<-w.startLearner(1, w.dieAt(point, step)).done
				if workerDies {
					kill()
					w.startRolloutWorker("w2")
				}
				w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
			})
		}
	}
}

// TestTraining trains until the policy has clearly improved on held-out tasks.
func TestTraining(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"a prompt for each member": false, "a prompt for each group": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trainSums(t, shared)
		})
	}
}

func trainSums(t *testing.T, shared bool) {
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed.Environments = []contract.Environment{arithmetic("train", 4000, 8, 16)}
		f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 32, 16
		f.Fixed.Algorithm.Optimizer.LearningRate = 1e-3
		f.Fixed.Model.LoraRank = 8
		f.Evaluation.Environments = []contract.Environment{arithmetic("test", 200, 1, 16)}
		f.Evaluation.EverySteps = 8
		f.Concurrency = 256
		f.Fixed.Environments[0].Sampling.SharedPrompt = new(shared)
	})
	w.startRolloutWorker("w0")
	w.startRolloutWorker("w1")
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	w.checkMetrics()
	before, after := w.result(0), w.result(w.file.Fixed.Algorithm.Steps)
	t.Logf("pass@1 on held-out tasks: %.2f before, %.2f after", before, after)
	if after < before+0.15 {
		t.Errorf("pass@1 went from %.3f to %.3f: nothing was learnt", before, after)
	}
	if best := verdict.Progress.Best; best == nil || best.Value == nil || *best.Value < after {
		t.Errorf("the best state is %+v, want one of pass@1 %.3f or more", best, after)
	}
}

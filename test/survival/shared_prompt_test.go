// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// withSharedPrompts makes the small run buy the prompt of each group once.
func withSharedPrompts(f *contract.RunFile) {
	f.Fixed.Environments[0].Sampling.SharedPrompt = new(true)
}

// withoutFaults runs one real worker without faults, and returns the outcome and the fixture.
func withoutFaults(t *testing.T, change func(*contract.RunFile)) (outcome, *fixture) {
	t.Helper()
	w := newFixture(t, change)
	w.startRolloutWorker("w0")
	return w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)), w
}

// watchedEndpoint calls before and after for each request for several samples.
type watchedEndpoint struct {
	rollout.Endpoint
	before, after func(ctx context.Context, request tinker.SampleRequest) error
}

// Sample implements rollout.Endpoint.
func (e watchedEndpoint) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	if request.NumSamples > 1 && e.before != nil {
		if err := e.before(ctx, request); err != nil {
			return tinker.SampleResult{}, err
		}
	}
	result, err := e.Endpoint.Sample(ctx, request)
	if err == nil && request.NumSamples > 1 && e.after != nil {
		err = e.after(ctx, request)
	}
	return result, err
}

// startWatched starts a real worker whose requests for several samples are watched.
func (w *fixture) startWatched(name string, before,
	after func(context.Context, tinker.SampleRequest) error) (kill func()) {
	w.t.Helper()
	return w.startRolloutWorkerWith(name, func(c *rollout.Config) {
		c.Endpoint = watchedEndpoint{c.Endpoint, before, after}
	})
}

// TestSharedPromptsBuyFewerTokens compares a run with a run that shares nothing. It buys one prompt for each group,
// with one request, instead of one for each of its 4 members, and gets other samples. No two workers make the same
// request.
func TestSharedPromptsBuyFewerTokens(t *testing.T) {
	t.Parallel()
	const groupSize, groups = 4, 3 * 4
	own, alone := withoutFaults(t, nil)
	w := newFixture(t, withSharedPrompts)
	var mu sync.Mutex
	posts := map[string]int{}
	count := func(_ context.Context, r tinker.SampleRequest) error {
		mu.Lock()
		defer mu.Unlock()
		posts[fmt.Sprintf("%s/%d of %d", r.SamplingSession, *r.SeqID, r.NumSamples)]++
		return nil
	}
	for i := range 3 {
		w.startWatched(fmt.Sprintf("w%d", i), count, nil)
	}
	shared := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	if shared.adapter == own.adapter || w.file.SpecDigest == alone.file.SpecDigest {
		t.Errorf("with and without sharedPrompt: weights %s and %s, digests %s and %s, want others",
			shared.adapter, own.adapter,
			w.file.SpecDigest, alone.file.SpecDigest)
	}
	steps := 0
	for i, line := range own.metrics {
		if want := line["batch/prompt_tokens"]; want > 0 {
			steps++
			if got := shared.metrics[i]["batch/prompt_tokens"] * groupSize; got != want {
				t.Errorf("step %d bought a quarter of %v tokens of prompts, and %v without sharing", steps, got, want)
			}
		}
	}
	if steps != 3 {
		t.Errorf("%d steps bought prompts, want 3", steps)
	}
	for post, n := range posts {
		if n != 1 || !strings.HasSuffix(post, fmt.Sprint(" of ", groupSize)) {
			t.Errorf("request %s was made %d times", post, n)
		}
	}
	if len(posts) < groups {
		t.Errorf("%d requests were made for several samples, want one for each of %d groups", len(posts), groups)
	}
}

// TestSharedPromptsAfterDeathAtEachFaultPoint kills the learner at each point, in turns alone and with a worker.
func TestSharedPromptsAfterDeathAtEachFaultPoint(t *testing.T) {
	t.Parallel()
	want, _ := withoutFaults(t, withSharedPrompts)
	for i, point := range learner.FaultPoints() {
		workerDies := i%2 == 0
		t.Run(fmt.Sprintf("%s, worker dies %t", point, workerDies), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withSharedPrompts)
			kill := w.startRolloutWorker("w0")
			w.startRolloutWorker("w1")
			step := int64(2)
			if strings.HasPrefix(point, "open.") {
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

// TestSharedPromptsAfterWorkerDeath kills a worker before it makes the request of a group, and after the endpoint has
// answered it, before any member has its reply. Another worker plays the whole group.
func TestSharedPromptsAfterWorkerDeath(t *testing.T) {
	t.Parallel()
	want, _ := withoutFaults(t, withSharedPrompts)
	for name, answered := range map[string]bool{"before the request": false, "after the answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withSharedPrompts)
			var once sync.Once
			reached := make(chan struct{})
			hold := func(ctx context.Context, _ tinker.SampleRequest) error {
				once.Do(func() { close(reached) })
				<-ctx.Done()
				return ctx.Err()
			}
			before, after := hold, hold
			if answered {
				before = nil
			}
			kill := w.startWatched("w0", before, after)
			a := w.startLearner(1, nil)
			<-reached
			kill()
			w.startRolloutWorker("w1")
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}

// TestFailingSharedRequests loses and fails requests of whole groups, which are made again with their seeds.
func TestFailingSharedRequests(t *testing.T) {
	t.Parallel()
	want, _ := withoutFaults(t, withSharedPrompts)
	w := newFixture(t, withSharedPrompts)
	w.addFaults(
		fault.Rule{Op: "asample", Do: fault.LoseFuture, Occurrence: 8, Count: 3},
		fault.Rule{Op: "asample", Do: fault.Fail, Category: "server", Occurrence: 12, Count: 2},
		fault.Rule{Op: "asample", Do: fault.DropAnswer, Occurrence: 16, Count: 2},
		fault.Rule{Op: "asample", Do: fault.Refuse, Status: 429, Occurrence: 20, Count: 2},
	)
	w.startRolloutWorker("w0")
	w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
}

// TestSharedPromptsNeedPlaces ends a run before samples are bought if the endpoint returns the samples of a request in
// another order each time. A run that shares nothing completes at this endpoint, with the weights of an undisturbed
// run.
func TestSharedPromptsNeedPlaces(t *testing.T) {
	t.Parallel()
	reordered := fault.Rule{Op: "asample", Do: fault.ReorderSamples, Count: -1}
	w := withoutCapabilities(newFixture(t, withSharedPrompts))
	w.addFaults(reordered)
	w.startRolloutWorker("w0")
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseConfigRejected)
	for _, words := range []string{"environments[arithmetic].sampling.sharedPrompt (ignored: ",
		"sample i of a request differs", "leave it out"} {
		if verdict.Reason != "UnsupportedByEndpoint" || !strings.Contains(verdict.Message, words) {
			t.Errorf("verdict is %s: %s; want %q", verdict.Reason, verdict.Message, words)
		}
	}
	if diff := cmp.Diff([]string{"num_samples"}, verdict.Progress.Capabilities.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}

	w = withoutCapabilities(newFixture(t, nil))
	w.addFaults(reordered)
	w.startWorker("w0", behavior{})
	w.checkSame(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
)

// answerRun is a run with a wrong answer to one of its operations.
type answerRun struct {
	*fixture
	transport *strangeTransport
	dies      hook
	attempt   int32
	workers   int
}

// worlds are the kinds of runs.
var worlds = []struct {
	name   string
	change func(*contract.RunFile)
	dies   bool
}{
	{"a run", nil, false},
	{"a run whose learner dies", nil, true},
	{"a run with a lag", withLag(1), false},
	{"a run with a lag whose learner dies", withLag(1), true},
}

// quietOutcomes returns the outcome of each kind of run without wrong answers.
func quietOutcomes(t *testing.T) []outcome {
	outcomes := make([]outcome, len(worlds))
	for i, kind := range worlds {
		if kind.dies {
			outcomes[i] = outcomes[i-1] // the kind before differs only by the death
			continue
		}
		w := newFixture(t, kind.change)
		w.startRolloutWorker("w0")
		outcomes[i] = w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	}
	return outcomes
}

// TestRandomAnswers draws wrong answers of the endpoint: an operation, its occurrence, the answer, and its duration.
// Each run ends with the weights and metrics of an undisturbed one, and its usage agrees with the bill; while the
// answers are wrong it waits, and reports the answers.
//
// The test ends after a minute, or after SURVIVAL_DRAWS draws, among which are answers that last for a minute. Another
// SURVIVAL_SEED gives other draws, and SURVIVAL_DRAW makes one of them alone.
func TestRandomAnswers(t *testing.T) {
	const streams, budget = 12, time.Minute
	seed, draws := fromEnvironment(t, "SURVIVAL_SEED", 0), fromEnvironment(t, "SURVIVAL_DRAWS", 0)
	only := fromEnvironment(t, "SURVIVAL_DRAW", -1)
	want := quietOutcomes(t)
	var next, given, exact atomic.Int64
	began := time.Now()
	more := func(n int64) bool {
		switch {
		case only >= 0:
			return n == int64(only)
		case draws > 0:
			return n < int64(draws)
		}
		return time.Since(began) < budget
	}
	if only >= 0 {
		next.Store(int64(only))
	}
	t.Run("streams", func(t *testing.T) {
		for stream := range streams {
			t.Run(fmt.Sprint(stream), func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1) - 1; more(n); n = next.Add(1) - 1 {
					// Each run is a test of its own, so that its simulator is freed at its end.
					t.Run(fmt.Sprint("draw ", n), func(t *testing.T) {
						met, open := answerWrongly(t, rand.New(rand.NewPCG(uint64(seed), uint64(n))), draws > 0 || only >= 0, want)
						if met {
							given.Add(1)
						}
						if met && open == 0 {
							exact.Add(1)
						}
					})
				}
			})
		}
	})
	t.Logf("%d draws of the seed %d; %d met a call; the usage of %d of these runs is the bill to the token",
		next.Load()-streams, seed, given.Load(), exact.Load())
	if exact.Load() == 0 && only < 0 {
		t.Errorf("%d of %d runs with a wrong answer agree with the bill to the token, want some", exact.Load(), given.Load())
	}
}

// TestWrongAnswersAreDrawnForEachOperation makes a run of each kind, and fails if
// it calls an operation that drawWrongAnswer does not know.
func TestWrongAnswersAreDrawnForEachOperation(t *testing.T) {
	called := map[string]bool{}
	for _, kind := range worlds {
		r := &answerRun{fixture: newFixture(t, kind.change), transport: &strangeTransport{repaired: true}}
		r.http = &http.Client{Transport: r.transport}
		if kind.dies {
			r.dies = dieIfAt("covered.sent", 1)
		}
		r.runUntilCompleted()
		r.transport.mu.Lock()
		maps.Copy(called, r.transport.called)
		r.transport.mu.Unlock()
	}
	for op := range called {
		if !slices.Contains(wireOps, op) {
			t.Errorf("no wrong answer is drawn for %s", op)
		}
	}
	if len(called) < 12 {
		t.Errorf("only %d operations were called: %v", len(called), called)
	}
}

// answerWrongly makes a run with a wrong answer, and compares it with the undisturbed run. It reports whether an
// answer was wrong, and returns the number of unconfirmed tokens.
func answerWrongly(t *testing.T, random *rand.Rand, long bool, want []outcome) (met bool, unconfirmed int64) {
	kind := random.IntN(len(worlds))
	drawn := drawWrongAnswer(random, long)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %s", worlds[kind].name, drawn)
		}
	})
	r := &answerRun{fixture: newFixture(t, worlds[kind].change), transport: &strangeTransport{answer: drawn}}
	r.http = &http.Client{Transport: r.transport}
	if worlds[kind].dies {
		points := []string{"sampler.announced", "save.submitted", "covered.sent"}
		r.dies = dieIfAt(points[random.IntN(len(points))], int64(1+random.IntN(2)))
	}
	verdict := r.runUntilCompleted()
	r.compare(verdict, want[kind])
	given, _ := r.transport.state()
	return given > 0, verdict.Progress.Usage.UnconfirmedTokens
}

// runUntilCompleted starts attempts, as the manager does, until one has completed the run.
func (r *answerRun) runUntilCompleted() contract.Verdict {
	r.t.Helper()
	const most = 20
	var verdict contract.Verdict
	for r.attempt < most {
		r.attempt++
		a := r.startLearner(r.attempt, r.dies)
		r.dies = nil
		r.await(a)
		verdict = a.verdict
		switch verdict.Cause {
		case contract.CauseCompleted:
			return verdict
		case contract.CauseCrashed, contract.CauseUpstream:
		default:
			r.t.Fatalf("attempt %d ended with %s (%s: %s)", r.attempt, verdict.Cause, verdict.Reason, verdict.Message)
		}
	}
	r.t.Fatalf("%d attempts did not complete the run; the last ended with %s (%s: %s)", most, verdict.Cause,
		verdict.Reason, verdict.Message)
	return verdict
}

// await waits for a learner. While it waits, it starts a worker for each that has ended, as the Job does, and repairs
// answers that have been wrong for a minute, once the learner reports them.
func (r *answerRun) await(a *attempt) {
	r.t.Helper()
	limit := time.After(patience)
	for {
		r.replaceWorker()
		if _, lasted := r.transport.state(); lasted >= time.Minute && r.transport.answer.lasts == time.Minute && r.tells(a) {
			r.transport.repair()
		}
		select {
		case <-a.done:
			return
		case <-limit:
			reply, err := r.heartbeat(a, r.attempt, contract.DesiredRun)
			r.t.Fatalf("the run hangs: it waits for %q, %v (%v)", reply.Waiting, reply.Problems, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tells reports whether the learner reports the wrong answer, by its status or by the operation.
func (r *answerRun) tells(a *attempt) bool {
	reply, err := r.heartbeat(a, r.attempt, contract.DesiredRun)
	if err != nil {
		return false
	}
	said := fmt.Sprint(reply.Waiting, " ", reply.Problems)
	wrong := r.transport.answer
	return strings.Contains(said, fmt.Sprint(wrong.status)) || strings.Contains(said, wrong.op) ||
		(wrong.op == "any" && len(reply.Problems) > 0) || wrong.kind == "a late answer"
}

// replaceWorker starts the first worker, and another one for each that has ended.
func (r *answerRun) replaceWorker() {
	r.mu.Lock()
	ended := len(r.ended)
	r.mu.Unlock()
	if r.workers > ended {
		return
	}
	r.workers++
	r.startRolloutWorkerBy(fmt.Sprint("w", r.workers), r.transport, func(*rollout.Config) {})
}

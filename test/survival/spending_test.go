// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// drawFault draws a refusal, a fault of the network or a failed operation. After each of them, the learner or worker
// still finds out whether its request was executed.
func drawFault(random *rand.Rand) fault.Rule {
	ops := []string{"asample", "forward_backward", "optim_step", "save_weights", "save_weights_for_sampler",
		"retrieve_future", "create_sampling_session"}
	rule := fault.Rule{Op: ops[random.IntN(len(ops))], Occurrence: 1 + random.IntN(12)}
	switch random.IntN(5) {
	case 0:
		rule.Do, rule.Status = fault.Refuse, []int{408, 429, 500, 502, 503}[random.IntN(5)]
		rule.Count = 1 + random.IntN(2)
	case 1:
		rule.Do = fault.DropRequest
	case 2:
		rule.Do = fault.DropAnswer
	case 3:
		rule.Do, rule.Seconds = fault.Delay, 0.05
	default:
		rule.Op = []string{"asample", "forward_backward", "optim_step"}[random.IntN(3)]
		rule.Do, rule.Category = fault.Fail, "server"
	}
	return rule
}

// killInOrOutOfFlight kills a learner at the n-th point that it passes, and counts a death if it had submitted a step
// and might not have received its replies.
func killInOrOutOfFlight(n int64, inFlight *atomic.Int64) hook {
	var passed atomic.Int64
	var submitted atomic.Bool
	return func(_ context.Context, kill func() error, point string, _ int64) error {
		switch point {
		case "step.sampled": // the submit follows, during which the learner may die at a point beside the loop
			submitted.Store(true)
		case "replies.clean", "open.listed":
			submitted.Store(false)
		}
		if passed.Add(1) != n {
			return nil
		}
		if submitted.Load() {
			inFlight.Add(1)
		}
		return kill()
	}
}

// TestSpendingAgreesWithTheBill draws at least 200 refusals, network faults and deaths of learners, or
// SURVIVAL_FAULTS. The usage of each run equals the bill of the simulator, to the token and by kind, with two
// exceptions. The sampled tokens may be below the bill in a run that gave a group to two workers, and the trained
// tokens in a run whose learner died while a step was in flight: the request ids of that step died with the learner,
// and sending the requests again would execute the ones that had not been executed. The unconfirmed tokens then cover
// the difference.
func TestSpendingAgreesWithTheBill(t *testing.T) {
	t.Parallel()
	const streams = 8
	seed, faults := streams*fromEnvironment(t, "SURVIVAL_SEED", 0), fromEnvironment(t, "SURVIVAL_FAULTS", 200)
	var drawn, sampled, trained, runs atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for stream := range streams {
			t.Run(fmt.Sprint(seed+stream), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(seed+stream), 25))
				for own := 0; own < faults/streams && !t.Failed(); {
					t.Run(fmt.Sprint("run ", runs.Add(1)), func(t *testing.T) {
						w := newSpendingRun(t, random)
						own += w.drawn
						drawn.Add(int64(w.drawn))
						if w.check() {
							sampled.Add(1)
						}
						if w.inFlight.Load() == 0 {
							trained.Add(1)
						}
					})
				}
			})
		}
	})
	t.Logf("%d faults in %d runs: sampled tokens had to agree in %d, and trained tokens in %d", drawn.Load(),
		runs.Load(), sampled.Load(), trained.Load())
	if 2*sampled.Load() < runs.Load() || 2*trained.Load() < runs.Load() {
		t.Errorf("of %d runs %d had to agree in sampled tokens, and %d in trained tokens, want half of them", runs.Load(),
			sampled.Load(), trained.Load())
	}
}

// spendingRun is a run under faults that has ended.
type spendingRun struct {
	*fixture
	rules    []fault.Rule
	drawn    int
	verdict  contract.Verdict
	inFlight atomic.Int64
}

// newSpendingRun makes a run under faults.
func newSpendingRun(t *testing.T, random *rand.Rand) *spendingRun {
	w := &spendingRun{fixture: newFixture(t, func(f *contract.RunFile) {
		withLag(random.IntN(2))(f)
		f.Fixed.Environments[0].GroupSize, f.Fixed.Algorithm.TasksPerStep = 2, 3
	})}
	if random.IntN(2) > 0 {
		w.barrier = 10 * time.Second // a worker dials again after 2 s at the latest
	}
	w.startWorker("w0", behavior{})
	w.startWorker("w1", behavior{})
	w.rules = make([]fault.Rule, 5+random.IntN(6))
	for i := range w.rules {
		w.rules[i] = drawFault(random)
	}
	if _, err := w.sim.Faults().Add(w.rules); err != nil {
		t.Fatal(err)
	}
	deaths := random.IntN(4)
	w.drawn = len(w.rules) + deaths
	for attempt := range int32(deaths) {
		<-w.startLearner(attempt+1, killInOrOutOfFlight(int64(1+random.IntN(40)), &w.inFlight)).done
	}
	w.verdict = w.waitFor(w.startLearner(int32(deaths)+1, nil), contract.CauseCompleted)
	return w
}

// check compares the usage with the bill, and reports whether the sampled tokens had to agree.
func (w *spendingRun) check() (sampled bool) {
	w.t.Helper()
	w.checkSpent(w.verdict)
	used, billed := w.verdict.Progress.Usage, w.sim.Stats().Billed
	sampled = !w.isSharedByWorkers()
	missing := billed.PromptTokens - used.PromptTokens + billed.SampledTokens - used.SampledTokens
	if used.PromptTokens > billed.PromptTokens || used.SampledTokens > billed.SampledTokens ||
		missing > used.UnconfirmedTokens || sampled && missing != 0 {
		w.t.Errorf("%d and %d tokens are reported as read and sampled, and %d as unconfirmed, want the %d and %d that were "+
			"billed; faults %+v", used.PromptTokens, used.SampledTokens, used.UnconfirmedTokens, billed.PromptTokens,
			billed.SampledTokens, w.rules)
	}
	trained := billed.ForwardBackwardTokens + billed.ForwardTokens
	missing = trained - used.TrainedTokens
	if missing < 0 || missing > used.UnconfirmedTokens || w.inFlight.Load() == 0 && missing != 0 {
		w.t.Errorf("%d tokens are reported as trained, want the %d that were billed; %d steps were in flight, faults %+v",
			used.TrainedTokens, trained, w.inFlight.Load(), w.rules)
	}
	return sampled
}

// isSharedByWorkers reports whether a group was given to both workers.
func (w *spendingRun) isSharedByWorkers() bool {
	times := map[rl.Key]int{}
	for _, p := range w.workers {
		p.mu.Lock()
		for key := range p.leased {
			times[key]++
		}
		p.mu.Unlock()
	}
	for _, n := range times {
		if n > 1 {
			return true
		}
	}
	return false
}

// TestSpendingWhenWorkersDie kills workers at random moments, 40 or SURVIVAL_WORKERS of them. The unreported usage of
// a dead worker is unconfirmed: the usage is never above the bill, and together with the unconfirmed tokens never
// below it.
func TestSpendingWhenWorkersDie(t *testing.T) {
	t.Parallel()
	const streams = 4
	seed, deaths := streams*fromEnvironment(t, "SURVIVAL_SEED", 0), fromEnvironment(t, "SURVIVAL_WORKERS", 40)
	var died, unconfirmed atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for stream := range streams {
			t.Run(fmt.Sprint(seed+stream), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(seed+stream), 26))
				for own := 0; own < deaths/streams && !t.Failed(); {
					t.Run("run", func(t *testing.T) {
						n, open := spendWhileWorkersDie(t, random)
						own += n
						died.Add(int64(n))
						unconfirmed.Add(open)
					})
				}
			})
		}
	})
	t.Logf("%d workers died, and %d tokens are unconfirmed", died.Load(), unconfirmed.Load())
	if unconfirmed.Load() == 0 {
		t.Error("no token is unconfirmed, though workers died within groups")
	}
}

// spendWhileWorkersDie makes a run whose workers die within groups, and returns the number of deaths and of
// unconfirmed tokens.
func spendWhileWorkersDie(t *testing.T, random *rand.Rand) (died int, unconfirmed int64) {
	w := newFixture(t, nil)
	c := &deathRun{fixture: w, random: random}
	c.addWorker()
	c.addWorker()
	deaths := 1 + random.IntN(3)
	at := map[int64]bool{}
	for len(at) < deaths {
		at[1+random.Int64N(40)] = true
	}
	var passed int64
	verdict := w.waitFor(w.startLearner(1, func(context.Context, func() error, string, int64) error {
		passed++
		if at[passed] {
			i := random.IntN(len(c.workers))
			c.workers[i].kill()
			c.workers = append(c.workers[:i], c.workers[i+1:]...)
			c.addWorker()
			died++
		}
		return nil
	}), contract.CauseCompleted)
	w.checkSpent(verdict)
	return max(died, 1), verdict.Progress.Usage.UnconfirmedTokens
}

// TestEvaluationIsBoughtOnce throws models away after the evaluation of their version, with artifacts and without.
func TestEvaluationIsBoughtOnce(t *testing.T) {
	t.Parallel()
	for name, artifacts := range map[string]bool{"with artifacts": true, "without artifacts": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) {
				f.Fixed.Algorithm.Steps = 2
				if !artifacts {
					f.ArtifactsDir = ""
				}
			})
			p := w.startWorker("w0", behavior{})
			w.addFaults(fault.Rule{Op: "optim_step", Do: fault.Fail, Category: "server", Count: 3})
			evaluated := make(chan struct{})
			var groups atomic.Int64
			verdict := w.waitFor(w.startLearner(1, func(ctx context.Context, _ func() error, point string, step int64) error {
				if point == "step.sampled" && step == 1 {
					if groups.Add(1) == 1 {
						go func() {
							defer close(evaluated)
							for p.evaluated() < 6 && ctx.Err() == nil {
								pauseFor(ctx, 1)
							}
						}()
					}
					<-evaluated
				}
				return nil
			}), contract.CauseCompleted)
			w.checkSpent(verdict)
			if models := groups.Load(); models < 4 {
				t.Fatalf("step 1 was tried %d times, want 4 at least", models)
			}
			if n := p.sampledTwice(); n != 0 {
				t.Errorf("%d groups were sampled twice", n)
			}
			// 12 tasks were evaluated, and 2 batches of 16 sampled.
			if calls := w.sim.Stats().Calls["asample"]; calls != 44 {
				t.Errorf("%d samples were asked for, want 44", calls)
			}
		})
	}
}

// evaluated counts the groups of evaluations that this worker sampled.
func (p *fakeWorker) evaluated() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.finished {
		if key.Evaluation != "" {
			n++
		}
	}
	return n
}

// TestBudgetOfAnEvaluation stops a run that only evaluates once its budget is reached, and continues it with a higher
// one.
func TestBudgetOfAnEvaluation(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed.Algorithm, f.Budget = nil, &spending.Budget{Tokens: 20}
	})
	w.startWorker("w0", behavior{room: 4})
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseDrained)
	if verdict.Reason != problem.BudgetReached || verdict.Progress.Usage.Total() < 20 {
		t.Errorf("the verdict is %s: %s, with the usage %+v", verdict.Reason, verdict.Message, verdict.Progress.Usage)
	}
	w.checkSpent(verdict)
	w.file.Budget = &spending.Budget{Tokens: 1 << 40}
	w.checkSpent(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
	w.result(0)
}

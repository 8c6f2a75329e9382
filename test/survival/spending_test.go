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
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// drawFault draws a refusal, a fault of the network or a failed operation. None of them hides from everybody that a
// request was executed.
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

// killInOrOutOfFlight kills a learner at the n-th point that it passes, and notes whether a step may have been
// submitted then whose replies it had not received.
func killInOrOutOfFlight(n int64, inFlight *atomic.Bool) hook {
	var passed atomic.Int64
	var submitted atomic.Bool
	return func(_ context.Context, kill func() error, point string, _ int64) error {
		switch point {
		case "step.sampled": // the submit follows, and a point that is passed beside the loop may kill the learner within
			submitted.Store(true)
		case "replies.clean", "open.listed":
			submitted.Store(false)
		}
		if passed.Add(1) != n {
			return nil
		}
		if submitted.Load() {
			inFlight.Store(true)
		}
		return kill()
	}
}

// TestSpendingAgreesWithTheBill draws at least 40 refusals, network faults and deaths of learners, or SURVIVAL_FAULTS.
// The usage of each run is never above what the simulator has billed, and with the unconfirmed tokens never below.
// Where learners wait for the workers of the one before, as in three runs of four, it is the bill to the token, except
// for a step whose replies its learner had not received or that failed, unless a group in play is given to another
// worker. At least half of the runs agree in what was read and sampled.
func TestSpendingAgreesWithTheBill(t *testing.T) {
	t.Parallel()
	const streams = 4
	seed, faults := streams*fromEnvironment(t, "SURVIVAL_SEED", 0), fromEnvironment(t, "SURVIVAL_FAULTS", 40)
	var drawn, sampled, exact, runs atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for stream := range streams {
			t.Run(fmt.Sprint(seed+stream), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(seed+stream), 25))
				for own := 0; own < faults/streams && !t.Failed(); {
					t.Run(fmt.Sprint("run ", runs.Add(1)), func(t *testing.T) {
						n, samples, all := spendUnderFaults(t, random)
						own += n
						drawn.Add(int64(n))
						if samples {
							sampled.Add(1)
						}
						if all {
							exact.Add(1)
						}
					})
				}
			})
		}
	})
	t.Logf("%d faults in %d runs, of which %d agree with the bill to the token, and the others but for what is "+
		"unconfirmed", drawn.Load(), runs.Load(), exact.Load())
	if exact.Load() == 0 || 2*sampled.Load() < runs.Load() {
		t.Errorf("%d of %d runs agree with the bill to the token, and %d in what was read and sampled, want half of the runs",
			exact.Load(), runs.Load(), sampled.Load())
	}
}

// spendUnderFaults makes a run, and returns how many faults it had, and whether its usage agrees with the bill to the
// token: in what was read and sampled, and in all.
func spendUnderFaults(t *testing.T, random *rand.Rand) (drawn int, sampled, all bool) {
	w := newFixture(t, withLag(random.IntN(2)))
	if random.IntN(4) > 0 {
		w.barrier = 10 * time.Second // a worker dials again after 2 s at the latest
	}
	w.startWorker("w0", behavior{})
	w.startWorker("w1", behavior{})
	rules := make([]fault.Rule, 3+random.IntN(4))
	for i := range rules {
		rules[i] = drawFault(random)
	}
	if _, err := w.sim.Faults().Add(rules); err != nil {
		t.Fatal(err)
	}
	drawn = len(rules)
	var inFlight atomic.Bool
	deaths := int32(random.IntN(4))
	for attempt := range deaths {
		a := w.startLearner(attempt+1, killInOrOutOfFlight(int64(1+random.IntN(40)), &inFlight))
		<-a.done
		drawn++
	}
	verdict := w.waitFor(w.startLearner(deaths+1, nil), contract.CauseCompleted)
	w.checkSpent(verdict)
	used, billed := verdict.Progress.Usage, w.sim.Stats().Billed
	same := used.PromptTokens == billed.PromptTokens && used.SampledTokens == billed.SampledTokens
	missing := billed.PromptTokens - used.PromptTokens + billed.SampledTokens - used.SampledTokens
	if used.PromptTokens > billed.PromptTokens || used.SampledTokens > billed.SampledTokens ||
		missing > used.UnconfirmedTokens {
		t.Errorf("%d and %d tokens are reported as read and sampled, and %d as unconfirmed, want the %d and %d that were "+
			"billed; faults %+v",
			used.PromptTokens, used.SampledTokens, used.UnconfirmedTokens, billed.PromptTokens, billed.SampledTokens, rules)
	}
	trained := billed.ForwardBackwardTokens + billed.ForwardTokens
	if used.TrainedTokens > trained || trained-used.TrainedTokens > used.UnconfirmedTokens && !inFlight.Load() {
		t.Errorf("%d tokens are reported as trained, want the %d that were billed; faults %+v", used.TrainedTokens, trained,
			rules)
	}
	return drawn, same, same && used.TrainedTokens == trained
}

// TestSpendingWhenWorkersDie kills workers at random moments, 40 or SURVIVAL_WORKERS of them. What a dead worker had
// not reported is unconfirmed: the usage is never above what was billed, and with the unconfirmed tokens never below.
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

// spendWhileWorkersDie makes a run whose workers die within groups, and returns how many did, and the unconfirmed
// tokens.
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// spread divides the events from 1 on into at most the given number of ranges, and returns one event of each. The seed
// selects the event: as many successive seeds as a range has events select all events.
func spread(events int64, most, seed int) []int64 {
	n := min(events, int64(most))
	var list []int64
	for i := range n {
		begin, end := i*events/n, (i+1)*events/n
		list = append(list, 1+begin+int64(seed)%(end-begin))
	}
	return list
}

// managerAway is the number of replies between the death of a manager and the start of the next manager.
const managerAway = 5

// TestAgentsSurviveAtEachEvent kills one process at one event in each run: the agents, the worker, its pod or the
// manager after a reply of the endpoint, or the learner at a fault point. It tries one event of each process;
// SURVIVAL_EVENTS raises the number, up to all events, and another SURVIVAL_SEED selects other events. Weights, rows,
// metrics and purchases equal an undisturbed run's.
func TestAgentsSurviveAtEachEvent(t *testing.T) {
	t.Parallel()
	most, seed := fromEnvironment(t, "SURVIVAL_EVENTS", 1), fromEnvironment(t, "SURVIVAL_SEED", 0)
	undisturbed := playAgents(t)
	t.Logf("an undisturbed run has %d replies, and its learner passes %d fault points", undisturbed.replies,
		undisturbed.points)
	for process, events := range map[string]int64{"agents": undisturbed.replies, "worker": undisturbed.replies,
		"pod": undisturbed.replies, "manager": undisturbed.replies, "learner": undisturbed.points} {
		for _, event := range spread(events, most, seed) {
			t.Run(fmt.Sprintf("%s at event %d", process, event), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, researching)
				d := &agentDeaths{fixture: w}
				var verdict contract.Verdict
				switch process {
				case "manager":
					verdict = w.playWithoutManager(event)
				case "learner":
					d.next(w.newAgentWorker("w0"))
					t.Cleanup(d.stop)
					verdict = w.playWithDeadLearner(event)
				default:
					of := map[string]*[]int64{"agents": &d.runner, "worker": &d.worker, "pod": &d.pod}[process]
					*of = []int64{event}
					d.next(w.newAgentWorker("w0"))
					t.Cleanup(d.stop)
					verdict = w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
					d.expect(1)
				}
				undisturbed.compareWith(w, verdict, process == "learner", process == "worker" || process == "pod")
			})
		}
	}
}

// playWithoutManager plays a run whose manager dies after a reply, and is replaced some replies later.
func (w *fixture) playWithoutManager(dies int64) contract.Verdict {
	w.t.Helper()
	begun, died, began := make(chan struct{}), make(chan struct{}), make(chan struct{})
	close(begun)
	w.startAgentWorker(w.newAgentWorker("w0"), func(n int64) {
		switch n {
		case dies:
			close(died)
		case dies + managerAway:
			close(began)
		}
	})
	a := w.startLearner(1, nil)
	var posted atomic.Int64
	go w.manage(a, &posted, begun, died)
	go w.manage(a, &posted, began, nil)
	verdict := w.waitFor(a, contract.CauseCompleted)
	if posted.Load() == 0 {
		w.t.Error("the learner answered no heartbeat")
	}
	return verdict
}

// playWithDeadLearner plays a run whose learner dies at a fault point.
func (w *fixture) playWithDeadLearner(dies int64) contract.Verdict {
	w.t.Helper()
	var passed atomic.Int64
	first := w.startLearner(1, func(_ context.Context, kill func() error, _ string, _ int64) error {
		if passed.Add(1) == dies {
			return kill()
		}
		return nil
	})
	<-first.done
	if first.verdict.Cause != contract.CauseCrashed {
		w.t.Fatalf("the learner ended with %s, want its death at the fault point %d", first.verdict.Cause, dies)
	}
	return w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/store"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// T2: spurious user errors.
func TestReviewSpuriousUserErrors(t *testing.T) {
	t.Skip("finding not repaired yet: learner A2")
	for name, tc := range map[string][]fault.Rule{
		"four passes over the run": {
			{Op: "forward_backward", Occurrence: 1, Do: fault.Fail, Category: "user"},
			{Op: "forward_backward", Occurrence: 3, Do: fault.Fail, Category: "user"},
			{Op: "forward_backward", Occurrence: 5, Do: fault.Fail, Category: "user"},
			{Op: "forward_backward", Occurrence: 7, Do: fault.Fail, Category: "user"},
		},
		"one optim_step":      {{Op: "optim_step", Occurrence: 2, Do: fault.Fail, Category: "user"}},
		"one optim_step, 400": {{Op: "optim_step", Occurrence: 2, Do: fault.Refuse, Status: 400, Message: "bad request"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = 8 })
			w.addFaults(tc...)
			w.startWorker("w0", behavior{})
			a := w.startLearner(1, nil)
			<-a.done
			t.Logf("verdict %s %s at step %d of 8: %s", a.verdict.Cause, a.verdict.Reason, a.verdict.Progress.Step, a.verdict.Message)
		})
	}
}

// T7: sampler saves are refused for good from the second on.
func TestReviewEndlessRetraining(t *testing.T) {
	t.Skip("finding not repaired yet: learner A4")
	w := newFixture(t, nil)
	w.addFaults(fault.Rule{Op: "save_weights_for_sampler", Name: "s000001", Count: -1, Do: fault.Fail, Category: "user", Message: "quota of checkpoints reached"})
	w.startWorker("w0", behavior{})
	a := w.startLearner(1, nil)
	most := 0.0
	for range 60 {
		time.Sleep(100 * time.Millisecond)
		select {
		case <-a.done:
			t.Logf("ended %s", a.verdict.Cause)
			return
		default:
		}
		if reply, err := w.heartbeat(a, 1, contract.DesiredRun); err == nil {
			most = max(most, reply.SecondsSinceProgress)
		}
	}
	reply, _ := w.heartbeat(a, 1, contract.DesiredRun)
	t.Logf("after 6 s: no verdict; passes %d, optimizer steps %d, models %d; step %d; most seconds without progress %.2f, upstream %q, blocked on %q",
		w.sim.Stats().Operations["forward_backward"], w.sim.Stats().Operations["optim_step"], w.models(), reply.Progress.Step, most, reply.Upstream, reply.BlockedOn)
}

// T10: a group without datums is condemned with the guilty one.
func TestReviewBisectCondemnsTheInnocent(t *testing.T) {
	t.Skip("finding not repaired yet: learner B10")
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
		if g.Key.Kind != rl.Train {
			return g
		}
		switch g.Key.Slot {
		case 5:
			g.Members[1].Segments[0].Tokens[0] = 1 << 20
		case 6:
			for i := range g.Members {
				g.Members[i].Segments = nil // every reply was masked
			}
		}
		return g
	}})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	for _, row := range w.rows() {
		for _, s := range row.Manifest {
			if s.Slot == 5 || s.Slot == 6 {
				t.Logf("slot %d of step %d: %s", s.Slot, row.Step, s.Outcome)
			}
		}
	}
}

// T10b: batches of one group: one bad group ends the run.
func TestReviewOneBadGroupOfOne(t *testing.T) {
	t.Skip("finding not repaired yet: learner A2")
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.TasksPerStep = 1 })
	w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
		if g.Key.Kind == rl.Train && g.Key.Slot == 1 {
			g.Members[1].Segments[0].Tokens[0] = 1 << 20
		}
		return g
	}})
	a := w.startLearner(1, nil)
	<-a.done
	t.Logf("verdict %s %s: %s", a.verdict.Cause, a.verdict.Reason, a.verdict.Message)
}

func (w *fixture) rows() []store.Row {
	files, _ := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "rows", "*.json"))
	var rows []store.Row
	for _, f := range files {
		data, _ := os.ReadFile(f)
		var r store.Row
		if json.Unmarshal(data, &r) == nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// T4: the sampler is lost once while groups are in play.
func TestReviewPolicyGoneTwice(t *testing.T) {
	t.Skip("finding not repaired yet: learner B6")
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.startWorker("w0", behavior{delay: func(slot int64) time.Duration { return time.Duration(slot%4) * 40 * time.Millisecond }})
	w.addFaults(fault.Rule{Op: "create_sampling_session", Name: "s000001.*a001m1-", Do: fault.Missing, Count: -1})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	t.Logf("models made: %d (2 would do, and 2 looks at the optimizer each)", w.models())
}

// T5: a state's save takes long; what do the metrics of time say?
func TestReviewTimeTotal(t *testing.T) {
	t.Skip("finding not repaired yet: learner B1")
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.addFaults(fault.Rule{Op: "save_weights", Do: fault.Pause, Seconds: 0.7, Count: -1})
	w.startWorker("w0", behavior{})
	began := time.Now()
	v := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	total := 0.0
	for _, r := range w.rows() {
		total += r.Metrics["time/total"]
	}
	t.Logf("wall %.2f s, of which 4 saves of a state 2.8 s; sum of time/total %.2f s, training seconds %.2f", time.Since(began).Seconds(), total, v.Progress.TrainingSeconds)
}

// T9: usage over a restart with a lag.
func TestReviewUsageOverRestart(t *testing.T) {
	t.Skip("finding not repaired yet: learner B2")
	w := newFixture(t, func(f *contract.RunFile) { withLag(1)(f); f.Evaluation = nil })
	w.startWorker("w0", behavior{})
	quiet := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted).Progress.Usage
	w = newFixture(t, func(f *contract.RunFile) { withLag(1)(f); f.Evaluation = nil })
	p := w.startWorker("w0", behavior{})
	for i, step := range []int64{1, 2, 3, 4} {
		<-w.startLearner(int32(i+1), w.dieAt("covered.sent", step)).done
	}
	struck := w.waitFor(w.startLearner(5, nil), contract.CauseCompleted).Progress.Usage
	t.Logf("sampled tokens: %d undisturbed, %d after four deaths of the learner alone; groups bought twice: %d, said to be: %d",
		quiet.SampledTokens, struck.SampledTokens, p.sampledTwice(), struck.BoughtTwiceTokens)
}

// T8: the best by a training metric over a restart.
func TestReviewBestByTrainingMetric(t *testing.T) {
	t.Skip("finding not repaired yet: learner B3")
	w := newFixture(t, func(f *contract.RunFile) {
		f.Evaluation = nil
		f.Checkpoints.KeepBestMetric = "env/all/reward/total"
		f.Fixed.Algorithm.Steps = 6
	})
	w.startWorker("w0", behavior{})
	first := w.startLearner(1, w.dieAt("covered.sent", 5))
	<-first.done
	say := func(v contract.Verdict) string {
		if v.Progress.Best == nil {
			return "none"
		}
		return fmt.Sprintf("step %d, %.4f", v.Progress.Best.Step, *v.Progress.Best.Value)
	}
	second := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	t.Logf("best before the restart: %s; after: %s", say(first.verdict), say(second))
	for _, r := range w.rows() {
		t.Logf("step %d reward %.4f", r.Step, r.Metrics["env/all/reward/total"])
	}
	for c, err := range w.client.Checkpoints(t.Context()) {
		if err == nil && strings.Contains(c.TinkerPath, "/weights/") {
			t.Logf("%s expires %v", c.TinkerPath[len(c.TinkerPath)-60:], c.ExpiresAt)
		}
	}
}

// T3: an evaluation whose sampler is gone and whose remaking fails once.
func TestReviewEvaluationParked(t *testing.T) {
	t.Skip("finding not repaired yet: learner B4")
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = 6 })
	worker := w.startWorker("w0", behavior{blockEvaluation: true})
	<-w.startLearner(1, w.dieAt("claim.looked", 2)).done
	worker.kill()
	w.addFaults(fault.Rule{Op: "create_sampling_session", Name: "s000000.*a001", Do: fault.Missing, Count: -1})
	w.addFaults(fault.Rule{Op: "save_weights_for_sampler", Name: "s000000", Do: fault.Fail, Category: "server"})
	w.startWorker("w1", behavior{})
	a := w.startLearner(2, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "covered.sent" {
			found, _ := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "evaluations", "*.json"))
			t.Logf("at step %d: %d results of evaluations; %d sampling sessions asked for", step, len(found), w.sim.Stats().Calls["create_sampling_session"])
			time.Sleep(300 * time.Millisecond)
		}
		return nil
	})
	w.waitFor(a, contract.CauseCompleted)
	found, _ := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "evaluations", "*.json"))
	t.Logf("at the end: %d", len(found))
}

// T12: a fault point that does not exist.
func TestReviewVacuous(t *testing.T) {
	t.Skip("finding not repaired yet: learner section 1, tests, item 1")
	want := baseline(t)
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("no.such.point", 2)).done
	second := w.startLearner(2, w.dieAt("no.such.point", 2))
	<-second.done
	if got := w.weights(second.verdict); got != want {
		t.Errorf("differs")
	}
	w.checkMetrics()
	t.Log("the body of TestDeathAtEachPoint passes with a point that is nowhere in the code")
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// calls counts all that arrived at the simulator.
func (w *fixture) calls() int64 {
	var all int64
	for _, n := range w.sim.Stats().Calls {
		all += n
	}
	return all
}

// callLimit bounds the calls of a run with faults by the calls of a run without. Each call that fails is repeated some
// times, so there are a hundred to spare. A call that is repeated without a pause, or a new model for each failure,
// leads to thousands in a second.
func callLimit(undisturbed int64) int64 { return 2*undisturbed + 100 }

// every injects a fault into each operation of a step, the polls for their results, and listings of runs.
func every(rule fault.Rule) []fault.Rule {
	var rules []fault.Rule
	for _, op := range []string{"create_model", "forward_backward", "optim_step", "save_weights",
		"save_weights_for_sampler", "asample", "retrieve_future", "list_training_runs"} {
		faulty := rule
		faulty.Op = op
		rules = append(rules, faulty)
	}
	return rules
}

// operations injects a fault into each operation of a step, but not into polls and listings.
func operations(rule fault.Rule) []fault.Rule {
	var rules []fault.Rule
	for _, op := range []string{"create_model", "forward_backward", "optim_step", "save_weights",
		"save_weights_for_sampler", "asample"} {
		faulty := rule
		faulty.Op = op
		rules = append(rules, faulty)
	}
	return rules
}

// TestEvidenceOfFailedSamples fails or refuses every sample of the workers: the learner reports which request fails and
// how it is answered, and the run completes when the endpoint recovers, with the weights of an undisturbed run.
func TestEvidenceOfFailedSamples(t *testing.T) {
	t.Parallel()
	quiet := newFixture(t, nil)
	quiet.startRolloutWorker("w0")
	want := quiet.outcome(quiet.waitFor(quiet.startLearner(1, nil), contract.CauseCompleted))
	for name, tc := range map[string]struct {
		rule     fault.Rule
		code     problem.Code
		evidence string
	}{
		"requests that fail": {fault.Rule{Do: fault.Refuse, Status: 503, Message: "no adapter"}, problem.EndpointFailing,
			"POST /api/v1/asample was answered with 503: no adapter"},
		"results that fail": {fault.Rule{Do: fault.Fail, Category: "server", Message: "out of memory"},
			problem.EndpointFailing,
			"POST /api/v1/retrieve_future was answered with 200: out of memory"},
		"requests that are refused": {fault.Rule{Do: fault.Refuse, Status: 400, Message: "no such adapter"},
			problem.SamplingRefused,
			"POST /api/v1/asample was answered with 400: no such adapter"},
		"results that are refused": {fault.Rule{Do: fault.Fail, Category: "user", Message: "seed is too long"},
			problem.SamplingRefused,
			"POST /api/v1/retrieve_future was answered with 200: seed is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			tc.rule.Op, tc.rule.Count = "asample", -1
			w.addFaults(tc.rule)
			w.startRolloutWorker("w0")
			a := w.startLearner(1, nil)
			if reply := w.awaitProblem(a, tc.code); reply.Evidence != tc.evidence {
				t.Errorf("the learner reports %q, want %q", reply.Evidence, tc.evidence)
			}
			w.sim.Faults().Clear()
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}

// TestUpstreamFaults injects faults into all operations of the run at once. One attempt completes it, with the weights
// of the undisturbed run: no gradient is added twice, no step is lost, no call is repeated without a pause, and no
// restart is counted.
func TestUpstreamFaults(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	quiet := newFixture(t, nil)
	quiet.startWorker("w0", behavior{})
	quiet.checkSame(quiet.waitFor(quiet.startLearner(1, nil), contract.CauseCompleted))
	limit := callLimit(quiet.calls())

	cases := map[string][]fault.Rule{
		"429 with a delay": every(fault.Rule{Do: fault.Refuse, Status: 429, RetryAfterSeconds: 0.1,
			Count: 2}),
		"429 without one": every(fault.Rule{Do: fault.Refuse, Status: 429, Count: 2}),
		"402": {{Op: "optim_step", Occurrence: 2, Do: fault.Refuse, Status: 402},
			{Op: "asample", Occurrence: 3, Do: fault.Refuse, Status: 402}},
		"500":                every(fault.Rule{Do: fault.Refuse, Status: 500}),
		"502, as of a proxy": every(fault.Rule{Do: fault.Refuse, Status: 502, Count: 2}),
		"503": every(fault.Rule{Do: fault.Refuse, Status: 503, RetryAfterSeconds: 0.1,
			Count: 2}),
		"504, after the work":               every(fault.Rule{Do: fault.DropAnswer}),
		"408":                               every(fault.Rule{Do: fault.Refuse, Status: 408}),
		"connections that drop":             every(fault.Rule{Do: fault.DropRequest, Count: 2}),
		"results that are permanently lost": operations(fault.Rule{Occurrence: 2, Do: fault.LoseFuture}),
		"failures of the server":            operations(fault.Rule{Occurrence: 2, Do: fault.Fail, Category: "server"}),
		"failures after the work": operations(fault.Rule{Occurrence: 2, Do: fault.Fail, Stage: fault.Reply,
			Category: "unknown"}),
		"a pause for want of capacity": operations(fault.Rule{Do: fault.Pause, Seconds: 0.3, QueueState: "paused_capacity",
			Count: 2}),
		"a pause at a rate limit": operations(fault.Rule{Do: fault.Pause, Seconds: 0.3, QueueState: "paused_rate_limit",
			Count: 2}),
		"results that are slow":    operations(fault.Rule{Do: fault.Pause, Seconds: 0.1, Stage: fault.Reply, Count: -1}),
		"a clock that ticks":       operations(fault.Rule{Do: fault.Cycle, Seconds: 0.1, Count: -1}),
		"a long way to the server": {{Do: fault.Delay, Seconds: 0.01, Count: -1}},
	}
	for name, rules := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, PollPatience: 50 * time.Millisecond}, nil)
			w.addFaults(rules...)
			w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			w.compare(verdict, want)
			// Polls are not compared: they are short here, so there are more of them, and their number differs from run to run.
			held := w.sim.Stats().Calls["retrieve_future"]
			if got := w.calls() - held; got > limit {
				t.Errorf("%d calls besides polls, want at most %d", got, limit)
			}
		})
	}
}

// TestFaultsOfListings fails the listings of a second attempt: listings of the models that are recorded among the
// artifacts, and listings of the whole account if there are no artifacts.
func TestFaultsOfListings(t *testing.T) {
	t.Parallel()
	for op, stored := range map[string]bool{"list_run_checkpoints": true, "list_checkpoints": false} {
		for name, rule := range map[string]fault.Rule{
			"429":                   {Do: fault.Refuse, Status: 429, RetryAfterSeconds: 0.1, Count: 2},
			"500":                   {Do: fault.Refuse, Status: 500},
			"502, as of a proxy":    {Do: fault.Refuse, Status: 502, Count: 2},
			"504, after the work":   {Do: fault.DropAnswer},
			"408":                   {Do: fault.Refuse, Status: 408},
			"connections that drop": {Do: fault.DropRequest, Count: 2},
		} {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, nil)
				if !stored {
					w.file.ArtifactsDir = ""
				}
				w.startWorker("w0", behavior{})
				<-w.startLearner(1, w.dieAt("save.answered", 2)).done
				rule.Op = op
				w.addFaults(rule)
				verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
				if stored {
					w.checkSame(verdict)
				} else if got, want := w.weights(verdict), baseline(t).adapter; got != want {
					t.Errorf("final adapter is %s, undisturbed %s", got, want)
				}
			})
		}
	}
}

// TestOneOfSeveralChunksFails fails one chunk of a pass: the gradients of the others are discarded with the model.
func TestOneOfSeveralChunksFails(t *testing.T) {
	t.Parallel()
	config := tinker.DefaultServerConfig()
	config.MaxChunkLen, config.ParallelChunks = 3, false
	chunked := func(t *testing.T, rules ...fault.Rule) (*fixture, contract.Verdict) {
		w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, Config: &config}, nil)
		w.addFaults(rules...)
		w.startWorker("w0", behavior{})
		return w, w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	}
	quiet, verdict := chunked(t)
	want := quiet.outcome(verdict)
	passes := quiet.sim.Stats().Operations["forward_backward"]
	if passes < 9 {
		t.Fatalf("the steps went out in %d chunks, want several each", passes)
	}
	cases := map[string]fault.Rule{
		"the first":                       {Occurrence: 1, Do: fault.Fail, Category: "server"},
		"one in the middle":               {Occurrence: 2, Do: fault.Fail, Category: "server"},
		"one in the middle of a later":    {Occurrence: int(passes) - 1, Do: fault.Fail, Category: "server"},
		"one that was carried out":        {Occurrence: 2, Do: fault.Fail, Stage: fault.Reply, Category: "server"},
		"one whose future is lost":        {Occurrence: 3, Do: fault.LoseFuture},
		"one whose submit gets no answer": {Occurrence: 2, Do: fault.DropAnswer},
		"one that never arrives":          {Occurrence: 2, Do: fault.DropRequest},
		"one that is refused for now":     {Occurrence: 2, Do: fault.Refuse, Status: 503},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule.Op = "forward_backward"
			w, verdict := chunked(t, rule)
			w.compare(verdict, want)
		})
	}
}

// TestOutage fails the endpoint for long: the learner tries again with pauses, reports the cause, and continues when
// the outage is over.
func TestOutage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rule     fault.Rule
		code     problem.Code
		evidence string
	}{
		"429 at every submit": {fault.Rule{Op: "optim_step", Do: fault.Refuse, Status: 429, Count: -1}, problem.Throttled,
			"POST /api/v1/optim_step was answered with 429"},
		"402 at every submit": {fault.Rule{Op: "optim_step", Do: fault.Refuse, Status: 402, Count: -1},
			problem.PaymentRequired,
			"POST /api/v1/optim_step was answered with 402"},
		"503 at every poll": {fault.Rule{Op: "retrieve_future", Do: fault.Refuse, Status: 503, Count: -1},
			problem.EndpointFailing,
			"POST /api/v1/retrieve_future was answered with 503"},
		"nobody answers": {fault.Rule{Do: fault.DropRequest, Count: -1}, problem.EndpointUnreachable,
			"POST /api/v1/client/config got no answer: EOF"},
		"no capacity": {fault.Rule{Op: "optim_step", Do: fault.Hold, QueueState: "paused_capacity", Count: -1},
			problem.PausedCapacity, ""},
		"a rate limit": {fault.Rule{Op: "optim_step", Do: fault.Hold, QueueState: "paused_rate_limit", Count: -1},
			problem.PausedRateLimit, ""},
	}
	want := baseline(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, PollPatience: 200 * time.Millisecond}, nil)
			w.addFaults(tc.rule)
			w.startWorker("w0", behavior{})
			a := w.startLearner(1, nil)
			reply := w.awaitProblem(a, tc.code)
			if !strings.HasPrefix(reply.Evidence, tc.evidence) {
				t.Errorf("evidence is %q, want %q", reply.Evidence, tc.evidence)
			}
			const watched, most = time.Second, 200
			before := w.calls()
			time.Sleep(watched)
			if made := w.calls() - before; made > most {
				t.Errorf("%d calls within %s of the outage, want at most %d", made, watched, most)
			}
			w.sim.Faults().Clear()
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}

// TestOutageDuringCapabilityCheck makes the capability check wait until an outage is over.
func TestOutageDuringCapabilityCheck(t *testing.T) {
	t.Parallel()
	cases := map[string]fault.Rule{
		"models are not made":      {Op: "create_model", Do: fault.Fail, Category: "server", Count: 7},
		"states are not saved":     {Op: "save_weights", Do: fault.Fail, Category: "server", Count: 4},
		"sessions are refused":     {Op: "create_session", Do: fault.Refuse, Status: 503, Count: 3},
		"the server is restarting": {Op: "create_model", Do: fault.Refuse, Status: 404, Count: 4},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withoutCapabilities(newFixture(t, nil))
			w.addFaults(rule)
			w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			w.checkSame(verdict)
			if c := verdict.Progress.Capabilities; len(c.Ignored)+len(c.Unsupported) > 0 {
				t.Errorf("an outage is taken for the endpoint's capabilities: %+v", c)
			}
		})
	}
}

func TestOutageOfLoadsCostsNothing(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for name, count := range map[string]int{"a blip": 3, "longer than the states last": 9} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			worker := w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt("retire.before", 2)).done
			w.addFaults(fault.Rule{Op: "load_weights", Do: fault.Fail, Category: "server", Count: count})
			verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			w.compare(verdict, want)
			if verdict.Progress.FromStep != 2 || worker.sampledTwice() != 0 {
				t.Errorf("resumed from step %d and bought %d groups twice, want step 2 and none", verdict.Progress.FromStep,
					worker.sampledTwice())
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestSpuriousRefusals refuses operations for a moment that the endpoint otherwise accepts.
func TestSpuriousRefusals(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for name, rules := range map[string][]fault.Rule{
		"a failed optimizer step": {{Op: "optim_step", Occurrence: 2, Do: fault.Fail, Category: "user"}},
		"an optimizer step's 400": {{Op: "optim_step", Occurrence: 2, Do: fault.Refuse, Status: 400, Message: "bad request"}},
		"two passes": {
			{Op: "forward_backward", Occurrence: 1, Do: fault.Fail, Category: "user"},
			{Op: "forward_backward", Occurrence: 3, Do: fault.Fail, Category: "user"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.addFaults(rules...)
			w.startWorker("w0", behavior{})
			w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
		})
	}
}

// TestSavesThatAreRefusedForLong refuses each save of a kind twelve times in a row, which costs more models than a
// learner discards without progress: one attempt waits, reports the answer and completes the run.
func TestSavesThatAreRefusedForLong(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, refused := range []fault.Rule{
		{Op: "save_weights", Occurrence: 2, Count: 12, Do: fault.Refuse, Status: 446, Message: "temporarily wrong"},
		{Op: "save_weights_for_sampler", Occurrence: 2, Count: 12, Do: fault.Refuse, Status: 404, Message: "temporary"},
	} {
		t.Run(refused.Op, func(t *testing.T) {
			w := newFixture(t, nil)
			w.addFaults(refused)
			w.startWorker("w0", behavior{})
			a := w.startLearner(1, nil)
			found := w.awaitProblem(a, problem.EndpointFailing)
			if !strings.Contains(found.Evidence, refused.Message) {
				t.Errorf("the evidence is %q, want the answer %q", found.Evidence, refused.Message)
			}
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}

// TestSpuriousRefusalsBetweenSteps refuses one request after every third step, and the learner overcomes each refusal.
// The refusals do not count later: a group that is rejected in the last step is found and left out.
func TestSpuriousRefusalsBetweenSteps(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps, f.Evaluation = 14, nil })
	bad := 13 * int64(w.file.Fixed.Algorithm.TasksPerStep)
	w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
		if g.Key.Kind == rl.Train && g.Key.Slot == bad {
			g.Members[1].Trajectories[0].Segments[0].Tokens[0] = 1 << 20
		}
		return g
	}})
	w.waitFor(w.startLearner(1, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "covered.sent" && step%3 == 0 {
			w.addFaults(fault.Rule{Op: "forward_backward", Do: fault.Fail, Category: "user"})
		}
		return nil
	}), contract.CauseCompleted)
	if got := w.outcomes()[bad]; got != rl.InvalidTokens.String() {
		t.Errorf("the bad group is %s", got)
	}
}

// TestRejectedGroupOfOne rejects the one group of a batch, which does not end the run.
func TestRejectedGroupOfOne(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.TasksPerStep = 1 })
	w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
		if g.Key.Kind == rl.Train && g.Key.Slot == 1 {
			g.Members[1].Trajectories[0].Segments[0].Tokens[0] = 1 << 20
		}
		return g
	}})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	if got := w.outcomes()[1]; got != rl.InvalidTokens.String() {
		t.Errorf("the bad group is %s", got)
	}
}

// TestGroupWithoutDataIsNotRejected trains a group with nothing but masked replies beside a group that is rejected.
func TestGroupWithoutDataIsNotRejected(t *testing.T) {
	t.Parallel()
	const bad = 5
	for _, empty := range []int64{4, 6, 7} {
		w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
		w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
			switch g.Key.Slot {
			case bad:
				g.Members[1].Trajectories[0].Segments[0].Tokens[0] = 1 << 20
			case empty:
				for i := range g.Members {
					g.Members[i].Trajectories[0].Segments = nil
				}
			}
			return g
		}})
		w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		outcomes := w.outcomes()
		if outcomes[bad] != rl.InvalidTokens.String() || outcomes[empty] != rl.Usable.String() {
			t.Errorf("the bad group is %s, and the group without data in slot %d is %s", outcomes[bad], empty, outcomes[empty])
		}
	}
}

// TestRepeatedFailureIsWaitedFor refuses sampler weights until the quota is raised: the learner reports why, trains the
// step few times meanwhile, and completes the run in the same attempt. The run has no evaluation, since each of its
// groups would be progress.
func TestRepeatedFailureIsWaitedFor(t *testing.T) {
	t.Parallel()
	const quota = "quota of checkpoints reached"
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.addFaults(fault.Rule{Op: "save_weights_for_sampler", Name: "s000001", Count: -1, Do: fault.Fail, Category: "user",
		Message: quota})
	w.startWorker("w0", behavior{})
	started, loaded, blocked := make(chan *attempt, 1), 0, ""
	a := w.startLearner(1, w.at("open.loaded", -1, func(context.Context, func() error, string, int64) error {
		// The second model is loaded because the weights of the first were refused.
		if loaded++; loaded == 2 {
			a := <-started
			w.until("the learner reports why it loads another model", func() bool {
				reply, err := w.heartbeat(a, 1, contract.DesiredRun)
				blocked = reply.Waiting
				return err == nil && strings.HasPrefix(blocked, "model: ")
			})
		}
		return nil
	}))
	started <- a
	found := w.awaitProblem(a, problem.EndpointFailing)
	if !strings.Contains(found.Evidence, quota) || !strings.Contains(blocked, quota) {
		t.Errorf("the evidence is %q and the learner was blocked on %q, want both to quote the endpoint", found.Evidence,
			blocked)
	}
	if steps := w.sim.Stats().Operations["optim_step"]; steps > 10 {
		t.Errorf("the step was trained %d times, want 10 at most", steps)
	}
	w.sim.Faults().Clear()
	w.waitFor(a, contract.CauseCompleted)
}

// TestRefusedSettingsOfALaterStepAreWaitedFor refuses the optimizer's settings that the endpoint accepted in the first
// step: the run does not ask for a repair of the spec, which cannot be the cause, and ends as an undisturbed run once
// the endpoint accepts them.
func TestRefusedSettingsOfALaterStepAreWaitedFor(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	w := newFixture(t, nil)
	w.addFaults(fault.Rule{Op: "optim_step", Occurrence: 2, Count: -1, Do: fault.Fail, Category: "user",
		Message: "not now"})
	w.startWorker("w0", behavior{})
	a := w.startLearner(1, nil)
	if found := w.awaitProblem(a, problem.EndpointFailing); !strings.Contains(found.Evidence, "not now") {
		t.Errorf("the evidence is %q, want the words of the endpoint", found.Evidence)
	}
	w.sim.Faults().Clear()
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
}

// awaitProblem waits until the learner of the first attempt reports the problem before all others, and returns it.
func (w *fixture) awaitProblem(a *attempt, code problem.Code) problem.Problem {
	w.t.Helper()
	var found problem.Problem
	w.until("the learner reports "+string(code), func() bool {
		select {
		case <-a.done:
			w.t.Fatalf("the learner ended (%s: %s) and did not report %s", a.verdict.Reason, a.verdict.Message, code)
		default:
		}
		reply, err := w.heartbeat(a, 1, contract.DesiredRun)
		found, _ = reply.Problem()
		return err == nil && found.Code == code
	})
	return found
}

// exhaustPatience puts the learners' clock forward until the learner has ended.
func (w *fixture) exhaustPatience(a *attempt) {
	w.t.Helper()
	w.until("the learner ended", func() bool {
		w.mu.Lock()
		w.ahead += time.Minute
		w.mu.Unlock()
		select {
		case <-a.done:
			return true
		default:
			return false
		}
	})
}

// TestRefusedKey refuses the key for some calls, which costs nothing, and permanently, which ends the attempt but not
// the run.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, op := range []string{"create_session", "create_model", "forward_backward", "save_weights",
		"save_weights_for_sampler"} {
		t.Run("for some calls of "+op, func(t *testing.T) {
			w := newFixture(t, nil)
			w.addFaults(fault.Rule{Op: op, Do: fault.Refuse, Status: 401, Count: 3})
			worker := w.startWorker("w0", behavior{})
			w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
			if n := worker.sampledTwice(); n != 0 {
				t.Errorf("%d groups were sampled twice", n)
			}
		})
	}
	for name, op := range map[string]string{"from the beginning": "create_session", "in a step": "optim_step"} {
		t.Run("permanently "+name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.addFaults(fault.Rule{Op: op, Do: fault.Refuse, Status: 401, Count: -1})
			w.startWorker("w0", behavior{})
			a := w.startLearner(1, nil)
			w.awaitProblem(a, problem.KeyRefused)
			w.exhaustPatience(a)
			verdict := w.waitFor(a, contract.CauseUpstream)
			if verdict.Reason != "KeyRefused" || verdict.Cause.ExitCode() != 75 {
				t.Errorf("the verdict is %s (exit %d), want KeyRefused (exit 75)", verdict.Reason, verdict.Cause.ExitCode())
			}
			w.sim.Faults().Clear()
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestEndpointThatIsNotTinkerAPI gives a run an address with a path that does not exist: the learner reports the
// request that failed, tries again for a while, and ends for the next attempt.
func TestEndpointThatIsNotTinkerAPI(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.file.Fixed.BaseURL += "/v1"
	a := w.startLearner(1, nil)
	evidence := w.awaitProblem(a, problem.EndpointNotTinker).Evidence
	w.exhaustPatience(a)
	const want = "POST /v1/api/v1/client/config was answered with 404"
	verdict := w.waitFor(a, contract.CauseUpstream)
	if verdict.Reason != "EndpointNotTinker" || !strings.HasPrefix(verdict.Message, want) || !strings.HasPrefix(evidence,
		want) {
		t.Errorf("the verdict is %s (%s), and the heartbeat reported %q", verdict.Reason, verdict.Message, evidence)
	}
}

// lister is a transport that takes the models out of the endpoint's list until they are offered.
type lister struct{ offered atomic.Bool }

func (l *lister) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || l.offered.Load() || !strings.HasSuffix(r.URL.Path, "/get_server_capabilities") {
		return reply, err
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	body = bytes.ReplaceAll(body, []byte(tinkersim.ModelName), []byte("another/model"))
	reply.Body, reply.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	reply.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return reply, err
}

// TestWorkerWithRefusedKeyLeavesTheRunToOthers refuses the key of one of two workers, as when a pod was replaced while
// its Secret had a wrong key. That worker ends, so that its Job starts another pod, and the learner gives its leases to
// the other worker: the run does not wait for the key, and nothing of its result changes.
func TestWorkerWithRefusedKeyLeavesTheRunToOthers(t *testing.T) {
	t.Parallel()
	undisturbed := newFixture(t, nil)
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

	w := newFixture(t, nil)
	refused, err := client.New(client.Config{BaseURL: w.url, APIKey: "tml-wrong"})
	if err != nil {
		t.Fatal(err)
	}
	w.startRolloutWorkerWith("refused", func(c *rollout.Config) {
		c.Endpoint, c.KeyPatience, c.Grace = refused, time.Millisecond, time.Millisecond
	})
	a := w.startLearner(1, nil)
	w.until("the worker ends", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return errors.Is(w.ended["refused"], rollout.ErrKeyRefused)
	})
	if reply, err := w.heartbeat(a, 1, contract.DesiredRun); err != nil || len(reply.Problems) > 0 {
		t.Errorf("the learner reports %v (%v), want no problem", reply.Problems, err)
	}
	w.startRolloutWorker("w0")
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
}

// TestModelThatTheEndpointDoesNotOffer trains a model that the endpoint does not list: the learner reports it, tries
// again for a while, and ends for the next attempt. A learner that is trying when the model is added continues.
func TestModelThatTheEndpointDoesNotOffer(t *testing.T) {
	want := baseline(t)
	const found = "The endpoint does not know the model tinkersim/byte-136k"
	w := newFixture(t, nil)
	models := &lister{}
	w.http = &http.Client{Transport: models}
	w.startWorker("w0", behavior{})
	first := w.startLearner(1, nil)
	evidence := w.awaitProblem(first, problem.ModelUnknown).Evidence
	w.exhaustPatience(first)
	verdict := w.waitFor(first, contract.CauseUpstream)
	if verdict.Reason != "ModelUnknown" || !strings.HasPrefix(verdict.Message, found) || evidence != verdict.Message ||
		verdict.Cause.ExitCode() != 75 {
		t.Errorf("the verdict is %s (%s), and the heartbeat reported %q", verdict.Reason, verdict.Message, evidence)
	}
	second := w.startLearner(2, nil)
	w.awaitProblem(second, problem.ModelUnknown)
	models.offered.Store(true)
	w.compare(w.waitFor(second, contract.CauseCompleted), want)
}

// TestContextThatIsTooShort checks that a run waits if its samples do not fit into the model's context.
func TestContextThatIsTooShort(t *testing.T) {
	w := newFixture(t, func(file *contract.RunFile) { file.Fixed.Environments[0].Limits.PromptTokens = 1 << 20 })
	a := w.startLearner(1, nil)
	evidence := w.awaitProblem(a, problem.ContextTooShort).Evidence
	w.exhaustPatience(a)
	verdict := w.waitFor(a, contract.CauseUpstream)
	if verdict.Reason != "ContextTooShort" || !strings.Contains(verdict.Message, "limits.promptTokens 1048576") ||
		evidence != verdict.Message {
		t.Errorf("the verdict is %s (%s), and the heartbeat reported %q", verdict.Reason, verdict.Message, evidence)
	}
}

// outcomes returns the outcome of each slot that a row names.
func (w *fixture) outcomes() map[int64]string {
	outcomes := map[int64]string{}
	for _, row := range w.rows() {
		for _, s := range row.Manifest {
			outcomes[s.Slot] = s.Outcome
		}
	}
	return outcomes
}

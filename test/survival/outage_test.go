// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// answerServer is an environment server whose sessions take an answer and end. While it is closed it takes no further
// session and continues its existing sessions.
type answerServer struct {
	*orstest.Server
	url    string
	closed atomic.Bool
}

// newAnswerEnvironment is an environment whose tool takes an answer and ends the episode.
func newAnswerEnvironment() *orstest.Server {
	return &orstest.Server{
		Name: "letters", Splits: map[string]int64{"train": 40, "test": 10}, Terminal: "submit", TerminalArgument: "answer",
		Prompt: func(session *orstest.Session) string { return fmt.Sprintf("Write %d letters.", session.Index%7) },
		Tools: map[string]orstest.Tool{"submit": func(_ *orstest.Session, input json.RawMessage) (orstest.Output, error) {
			var arguments struct{ Answer string }
			if err := json.Unmarshal(input, &arguments); err != nil {
				return orstest.Output{}, err
			}
			reward := float64(len(arguments.Answer)%5) / 4
			return orstest.Output{Text: "Thank you.", Reward: &reward, Finished: true}, nil
		}},
	}
}

func newAnswerServer(t *testing.T) *answerServer {
	t.Helper()
	s := &answerServer{Server: newAnswerEnvironment()}
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/create_session" || !s.closed.Load() {
			return false
		}
		http.Error(w, "the server is closed", http.StatusServiceUnavailable)
		return true
	}
	// The path may begin with a number, which distinguishes the environments of TestManyEnvironments.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); ok && strings.Trim(first,
			"0123456789") == "" {
			r.URL.Path = "/" + rest
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL
	return s
}

// served is an environment of a server.
func served(name, url string) contract.Environment {
	e := arithmetic("train", 40, 4, 8)
	e.Name, e.Definition = name, contract.Definition{ORS: &contract.ORS{ORS: settings.ORS{URL: url,
		Timeouts: settings.ORSTimeouts{CreateSeconds: 60, CallSeconds: 60}}}}
	return e
}

// TestRunWaitsForAnEnvironmentServer closes the server of the run's only environment while it trains. The run waits,
// reports that, and has the weights of an undisturbed run in the end.
func TestRunWaitsForAnEnvironmentServer(t *testing.T) {
	t.Parallel()
	on := func(s *answerServer) *fixture {
		w := newFixture(t, func(f *contract.RunFile) {
			f.Fixed.Environments, f.Evaluation = []contract.Environment{served("letters", s.url)}, nil
			// The digest of the definition covers the server's address, so it is computed with the same address for each
			// server.
			f.Fixed.Environments[0].Definition.ORS.URL = "http://letters"
		})
		w.file.Fixed.Environments[0].Definition.ORS.URL = s.url
		return w
	}
	undisturbed := on(newAnswerServer(t))
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

	server := newAnswerServer(t)
	w := on(server)
	w.startRolloutWorker("w0")
	a := w.startLearner(1, func(_ context.Context, _ func() error, point string, step int64) error {
		if point == "step.submitted" && step == 1 {
			server.closed.Store(true)
		}
		return nil
	})
	var reply contract.HeartbeatReply
	w.until("the learner reports the outage", func() bool {
		var err error
		reply, err = w.heartbeat(a, 1, contract.DesiredRun)
		return err == nil && len(reply.Unavailable) > 0
	})
	if e := reply.Unavailable[0]; e.Name != "letters" || e.Skipped || !strings.Contains(e.Problem,
		"the server is closed") {
		t.Errorf("unavailable is %+v, want letters with the server's answer", e)
	}
	blocked := problem.Problem{Code: problem.EnvironmentUnavailable, Evidence: `"letters"`}
	if found, _ := reply.Problem(); found != blocked {
		t.Errorf("the run waits for %+v, want %+v", found, blocked)
	}
	server.closed.Store(false)
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
	if diff := cmp.Diff(undisturbed.timelessMetrics(), w.timelessMetrics()); diff != "" {
		t.Errorf("metrics (-undisturbed +with an outage):\n%s", diff)
	}
}

// skipping prepares a run of the environments "letters", which may be skipped, and arithmetic.
func skipping(t *testing.T, server *answerServer) *fixture {
	w := newFixture(t, func(f *contract.RunFile) {
		letters := served("letters", "http://letters")
		letters.SkipUnavailable = true
		f.Fixed.Environments = []contract.Environment{letters, arithmetic("train", 40, 4, 8)}
		f.Evaluation = nil
		f.Fixed.Algorithm.Steps = 4
	})
	w.file.Fixed.Environments[0].Definition.ORS.URL = server.url
	w.skipAfter = time.Millisecond
	return w
}

// TestSkippedEnvironment trains on the other environment while a server takes no sessions; the groups that are dropped
// are recorded, so that a run that resumes has the weights of a run that does not.
func TestSkippedEnvironment(t *testing.T) {
	t.Parallel()
	server := newAnswerServer(t)
	server.closed.Store(true)
	w := skipping(t, server)
	w.startRolloutWorker("w0")
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	dropped := 0
	for _, outcome := range w.outcomes() {
		if outcome == rl.EnvironmentFault.String() {
			dropped++
		}
	}
	if dropped == 0 {
		t.Errorf("no group was dropped: %v", w.outcomes())
	}
	for _, line := range w.timelessMetrics() {
		if _, ok := line["env/letters/reward/total"]; ok {
			t.Errorf("a step has rewards of an environment whose server took no session: %v", line)
		}
	}
	resumed := skipping(t, server)
	resumed.startRolloutWorker("w0")
	<-resumed.startLearner(1, resumed.dieAt("save.answered", 1)).done
	resumed.compare(resumed.waitFor(resumed.startLearner(2, nil), contract.CauseCompleted), want)
}

// TestSkippedEnvironmentRecovers opens the server in the middle of the run: later steps train on both environments.
func TestSkippedEnvironmentRecovers(t *testing.T) {
	t.Parallel()
	server := newAnswerServer(t)
	server.closed.Store(true)
	w := skipping(t, server)
	w.startRolloutWorker("w0")
	started := make(chan *attempt, 1)
	a := w.startLearner(1, func(ctx context.Context, _ func() error, point string, step int64) error {
		if point != "step.submitted" || step != 1 {
			return nil
		}
		server.closed.Store(false)
		for a := <-started; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if reply, err := w.heartbeat(a, 1, contract.DesiredRun); err == nil && len(reply.Unavailable) == 0 {
				break
			}
		}
		return nil
	})
	started <- a
	w.waitFor(a, contract.CauseCompleted)
	last := w.timelessMetrics()[len(w.timelessMetrics())-1]
	if _, ok := last["env/letters/reward/total"]; !ok {
		t.Errorf("the last step has no rewards of the environment that became available again: %v", last)
	}
}

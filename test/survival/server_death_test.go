// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
)

// onServer prepares a run whose only environment is the server's. Its digests do not depend on the server's address.
func onServer(t *testing.T, s *answerServer) *fixture {
	t.Helper()
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed.Environments, f.Evaluation = []contract.Environment{served("letters", "http://letters")}, nil
		f.Fixed.Environments[0].Retries = 6
	})
	w.file.Fixed.Environments[0].Definition.ORS.URL = s.url
	return w
}

// isCall reports whether a request calls a tool.
func isCall(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/call") }

// TestFaultyEnvironmentServers fails the first calls or sessions of a server. The run completes, the metric of the
// case counts the faults, and no session is left behind.
func TestFaultyEnvironmentServers(t *testing.T) {
	t.Parallel()
	const failures = 5
	raise := func(tool orstest.Tool, left *atomic.Int64) orstest.Tool {
		return func(s *orstest.Session, input json.RawMessage) (orstest.Output, error) {
			if left.Add(-1) >= 0 {
				return orstest.Output{}, errors.New("the tool raised")
			}
			return tool(s, input)
		}
	}
	cases := map[string]struct {
		// before answers a request in the server's place.
		before  func(s *answerServer, w http.ResponseWriter, r *http.Request) bool
		applies func(*http.Request) bool
		change  func(*answerServer, *atomic.Int64)
		// metric is the metric that counts the faults; empty if no metric does.
		metric string
	}{
		"a connection that breaks in a call": {applies: isCall, metric: "batch/retries",
			before: func(_ *answerServer, _ http.ResponseWriter, _ *http.Request) bool {
				panic(http.ErrAbortHandler)
			}},
		"a call that is never answered": {applies: isCall, metric: "batch/retries",
			before: func(_ *answerServer, _ http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body) // The context ends with the connection only once the body is read.
				<-r.Context().Done()
				return true
			}},
		"a call that trickles bytes": {applies: isCall, metric: "batch/retries",
			before: func(_ *answerServer, w http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				for r.Context().Err() == nil {
					_, _ = fmt.Fprint(w, ": ping\n\n")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(20 * time.Millisecond)
				}
				return true
			}},
		"a server that forgets its sessions": {applies: isCall, metric: "batch/retries",
			before: func(s *answerServer, _ http.ResponseWriter, _ *http.Request) bool {
				s.Forget()
				return false
			}},
		"a tool that raises": {metric: "batch/retries", change: func(s *answerServer, left *atomic.Int64) {
			s.Tools["submit"] = raise(s.Tools["submit"], left)
		}},
		"an output of ten megabytes": {metric: "env/all/tool_outputs_cut", change: func(s *answerServer, left *atomic.Int64) {
			submit := s.Tools["submit"]
			var tasks sync.Map // A group may be played twice, and the play that counts must also have the output.
			s.Tools["submit"] = func(session *orstest.Session, input json.RawMessage) (orstest.Output, error) {
				output, err := submit(session, input)
				if left.Add(-1) >= 0 {
					tasks.Store(session.Index, true)
				}
				if _, ok := tasks.Load(session.Index); ok {
					output.Text = strings.Repeat("x", 10<<20)
				}
				return output, err
			}
		}},
		"no capacity for a while": {
			applies: func(r *http.Request) bool { return r.URL.Path == "/create_session" },
			before: func(_ *answerServer, w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAnswerServer(t)
			var left atomic.Int64
			left.Store(failures)
			if tc.change != nil {
				tc.change(server, &left)
			} else {
				server.Before = func(w http.ResponseWriter, r *http.Request) bool {
					return tc.applies(r) && left.Add(-1) >= 0 && tc.before(server, w, r)
				}
			}
			w := onServer(t, server)
			w.file.Fixed.Environments[0].Definition.ORS.Timeouts.CallSeconds = 60
			if tc.before != nil { // Only in these cases may an answer never come.
				w.file.Fixed.Environments[0].Definition.ORS.Timeouts.CallSeconds = 1
			}
			w.startRolloutWorker("w0")
			w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			if left.Load() >= 0 {
				t.Errorf("%d failures did not occur", left.Load()+1)
			}
			counted := 0.0
			for _, line := range w.metrics() {
				counted += line[tc.metric]
			}
			if tc.metric != "" && counted == 0 {
				t.Errorf("%s is 0 in every step", tc.metric)
			}
			w.until("all sessions are deleted", func() bool { return server.Sessions() == 0 })
		})
	}
}

// TestWorkerDiesInACall kills a worker and a learner while a tool runs. Another worker ends the run with the weights of
// an undisturbed one.
func TestWorkerDiesInACall(t *testing.T) {
	t.Parallel()
	undisturbed := onServer(t, newAnswerServer(t))
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

	for name, learnerDies := range map[string]bool{"the worker": false, "worker and learner": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAnswerServer(t)
			submit := server.Tools["submit"]
			var calls atomic.Int64
			reached, dead := make(chan struct{}), make(chan struct{})
			server.Tools["submit"] = func(s *orstest.Session, input json.RawMessage) (orstest.Output, error) {
				switch n := calls.Add(1); {
				case n == 21: // It is in the second step.
					close(reached)
					<-dead
				case n > 21:
					<-dead
				}
				return submit(s, input)
			}
			w := onServer(t, server)
			kill := w.startRolloutWorker("w0")
			a := w.startLearner(1, nil)
			<-reached
			attempt := int32(1)
			if learnerDies {
				a.cancel()
				<-a.done
				attempt = 2
			}
			kill()
			close(dead)
			w.startRolloutWorker("w1")
			if learnerDies {
				a = w.startLearner(attempt, nil)
			}
			w.compare(w.waitFor(a, contract.CauseCompleted), want)
		})
	}
}

// TestManyEnvironments trains on 32 environments of one server, each with its own split, group size and weight.
func TestManyEnvironments(t *testing.T) {
	t.Parallel()
	const count = 32
	server := newAnswerServer(t)
	for i := range count {
		server.Splits[fmt.Sprintf("train%d", i)] = int64(5 + i)
	}
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed.Environments, f.Evaluation = nil, nil
		for i := range count {
			e := served(fmt.Sprintf("letters%d", i), fmt.Sprintf("%s/%d", server.url, i))
			e.Splits = []contract.Split{{Name: fmt.Sprintf("train%d", i), Shuffle: i%2 == 0, Tasks: int64(5 + i)}}
			e.GroupSize, e.Weight = 2+i%3, float64(1+i%2)
			f.Fixed.Environments = append(f.Fixed.Environments, e)
		}
		f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 48, 1
	})
	w.startRolloutWorker("w0")
	w.startRolloutWorker("w1")
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	last := w.metrics()[len(w.metrics())-1]
	for i := range count {
		groups, light := last[fmt.Sprintf("env/letters%d/total_episodes", i)]/float64(2+i%3), float64(1+i%2)
		if groups != light {
			t.Errorf("environment %d has %v groups in the step, want %v", i, groups, light)
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
)

func TestMetrics(t *testing.T) {
	type metrics = map[string]float64
	cases := map[string]struct {
		do   func(*Status)
		want metrics
	}{
		"a step": {func(s *Status) { s.SetStep(metrics{"env/all/reward/total": 1}, false) },
			metrics{"env/all/reward/total": 1}},
		"an evaluation": {func(s *Status) { s.SetEvaluation(contract.RunFile{}, 20, metrics{"test/x": 1}) },
			metrics{"test/x": 1}},
		"a step keeps the evaluation": {func(s *Status) {
			s.SetEvaluation(contract.RunFile{}, 20, metrics{"test/x": 1})
			s.SetStep(metrics{"a": 1}, false)
			s.SetStep(metrics{"b": 2}, false)
		}, metrics{"b": 2, "test/x": 1}},
		"an evaluation keeps the step": {func(s *Status) {
			s.SetStep(metrics{"a": 1}, false)
			s.SetEvaluation(contract.RunFile{}, 20, metrics{"test/x": 1})
			s.SetEvaluation(contract.RunFile{}, 40, metrics{"test/y": 2})
		}, metrics{"a": 1, "test/y": 2}},
		"an evaluation of an earlier step that ends later": {func(s *Status) {
			s.Update(func(p *contract.Progress) { p.Step = 60 })
			s.SetEvaluation(contract.RunFile{}, 60, metrics{"test/x": 1})
			s.SetEvaluation(contract.RunFile{}, 40, metrics{"test/x": 0})
		}, metrics{"test/x": 1}},
		"an evaluation after a return to an earlier step": {func(s *Status) {
			s.Update(func(p *contract.Progress) { p.Step = 60 })
			s.SetEvaluation(contract.RunFile{}, 60, metrics{"test/x": 1})
			s.Update(func(p *contract.Progress) { p.Step = 40 })
			s.SetEvaluation(contract.RunFile{}, 40, metrics{"test/x": 0})
		}, metrics{"test/x": 0}},
		"an evaluation that was lost": {func(s *Status) {
			s.SetEvaluation(contract.RunFile{}, 20, metrics{"test/x": 1})
			s.SetEvaluation(contract.RunFile{}, 40, nil)
		}, metrics{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStatus("uid", 1, time.Now)
			tc.do(s)
			if diff := cmp.Diff(tc.want, s.Progress().Metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDivergedStays(t *testing.T) {
	s := NewStatus("uid", 1, time.Now)
	s.SetStep(nil, true)
	s.SetStep(nil, false)
	if !s.Progress().Diverged {
		t.Error("a run that diverged is reported as sound after the next step")
	}
}

func TestEnvironments(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	file := contract.RunFile{
		Fixed:      contract.Fixed{Environments: []contract.Environment{{Name: "b"}, {Name: "a"}}},
		Evaluation: &contract.Evaluation{Environments: []contract.Environment{{Name: "c"}, {Name: "a"}}},
	}
	cases := map[string]struct {
		metrics map[string]float64
		want    []contract.EnvironmentMetrics
	}{
		"without metrics": {nil, []contract.EnvironmentMetrics{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		"each has its own": {
			map[string]float64{
				"env/a/reward/total": 1, "test/a/pass@1": 2, "env/b/fault_ratio": 3, "env/all/reward/total": 4,
				"test/a/pass@1/ci95_low": 1, "test/a/pass@1/ci95_high": 3, "test/env/a/judge_acc": 5,
			},
			[]contract.EnvironmentMetrics{
				{Name: "a", Reward: value(1), PassAt1: value(2), Evaluation: []contract.Estimate{
					{Name: "pass@1", Value: 2, Low: value(1), High: value(3)}, {Name: "judge_acc", Value: 5},
				}},
				{Name: "b", FaultRatio: value(3)}, {Name: "c"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Environments(file, tc.metrics)); diff != "" {
				t.Errorf("environments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemOfAnEvent(t *testing.T) {
	cases := map[string]struct {
		event client.Event
		want  problem.Code
	}{
		"throttled": {client.Event{Category: tinker.CategoryThrottled}, problem.Throttled},
		"payment":   {client.Event{Category: tinker.CategoryPayment}, problem.PaymentRequired},
		"paused": {client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity},
			problem.PausedCapacity},
		"unreachable":    {client.Event{Category: tinker.CategoryUnreachable}, problem.EndpointUnreachable},
		"too large":      {client.Event{Category: tinker.CategoryTooLarge}, problem.RequestTooLarge},
		"a server error": {client.Event{Category: tinker.CategoryServer}, problem.EndpointFailing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStatus("uid", 1, time.Now)
			s.Observe(tc.event)
			if got, _ := s.Reply("").Problem(); got.Code != tc.want {
				t.Errorf("problem is %q, want %q", got.Code, tc.want)
			}
			tc.event.Over = true
			s.Observe(tc.event)
			if got, any := s.Reply("").Problem(); any {
				t.Errorf("problem is %q after it is over, want none", got.Code)
			}
		})
	}
}

func TestOrderOfProblems(t *testing.T) {
	store := problem.Problem{Code: problem.ArtifactsBlocked, Evidence: "offline"}
	tokenizer := problem.Problem{Code: problem.TokenizerBlocked, Evidence: "404"}
	judge := problem.Problem{Code: problem.JudgeBlocked, Evidence: "503"}
	failing := problem.Problem{Code: problem.EndpointFailing, Evidence: "473"}
	block := func(s *Status, p problem.Problem) { s.Block(p.Code, p.Evidence) }
	cases := map[string]struct {
		do       func(*Status)
		observed []problem.Problem
		want     []problem.Problem
	}{
		"nothing":       {do: func(*Status) {}},
		"the store":     {do: func(s *Status) { block(s, store) }, want: []problem.Problem{store}},
		"the tokenizer": {do: func(s *Status) { block(s, tokenizer) }, want: []problem.Problem{tokenizer}},
		"the store before the tokenizer, and both before workers": {do: func(s *Status) {
			block(s, tokenizer)
			block(s, store)
		}, observed: []problem.Problem{judge}, want: []problem.Problem{store, tokenizer, judge}},
		"the endpoint before all": {do: func(s *Status) {
			block(s, store)
			s.AddProblem(problem.Problem{Code: problem.Throttled})
		}, want: []problem.Problem{{Code: problem.Throttled}, store}},
		"an endpoint with which no model makes progress": {do: func(s *Status) {
			block(s, store)
			block(s, failing)
		}, want: []problem.Problem{failing, store}},
		"an endpoint that fails for two reasons": {do: func(s *Status) {
			block(s, failing)
			s.AddProblem(problem.Problem{Code: problem.EndpointFailing, Evidence: "502"})
		}, want: []problem.Problem{{Code: problem.EndpointFailing, Evidence: "502"}}},
		"a store that is back": {do: func(s *Status) {
			block(s, store)
			s.Block(problem.ArtifactsBlocked, "")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStatus("uid", 1, time.Now)
			tc.do(s)
			reply := s.Reply("waiting", tc.observed...)
			if diff := cmp.Diff(tc.want, reply.Problems); diff != "" || reply.Waiting != "waiting" {
				t.Errorf("waiting for %q; problems (-want +got):\n%s", reply.Waiting, diff)
			}
		})
	}
}

// TestStoreOfAPrivateAuthority reports a store whose authority is not trusted until the store answers.
func TestStoreOfAPrivateAuthority(t *testing.T) {
	server := transporttest.PrivateServer(t)
	_, refused := tls.Dial("tcp", server.Listener.Addr().String(), nil)
	s := NewStatus("uid", 1, time.Now)
	for want, err := range map[problem.Code]error{problem.ArtifactsAuthorityUnknown: fmt.Errorf("writing: %w", refused),
		problem.ArtifactsBlocked: errors.New("offline"), "": nil} {
		s.BlockBy(problem.ArtifactsBlocked, err)
		if got, _ := s.Reply("").Problem(); got.Code != want {
			t.Errorf("for %v the learner reports %+v, want %s", err, got, want)
		}
	}
}

func TestRoutes(t *testing.T) {
	s := Server{
		RunUID: "uid", Status: NewStatus("uid", 7, time.Now), Credentials: contract.Credentials{Token: "worker",
			ManagerToken: "manager"},
		Beat: func(contract.HeartbeatRequest) contract.HeartbeatReply { return contract.HeartbeatReply{Attempt: 7} },
	}
	const heartbeat = `{"runUID": "uid", "attempt": 8}`
	cases := map[string]struct {
		method, path, token string
		code                int
		body                string
	}{
		"liveness":                   {http.MethodGet, "/healthz", "", http.StatusOK, "ok"},
		"readiness":                  {http.MethodGet, "/readyz", "", http.StatusOK, "ok"},
		"metrics":                    {http.MethodGet, "/metrics", "manager", http.StatusNotFound, ""},
		"a heartbeat of the manager": {http.MethodPost, contract.HeartbeatPath, "manager", http.StatusOK, `"attempt":7`},
		"a heartbeat of a worker": {http.MethodPost, contract.HeartbeatPath, "worker", http.StatusUnauthorized,
			"the manager's token"},
		"a heartbeat of nobody": {http.MethodPost, contract.HeartbeatPath, "", http.StatusUnauthorized,
			"the manager's token"},
		"another path": {http.MethodGet, "/other", "manager", http.StatusNotFound, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest(tc.method, tc.path, strings.NewReader(heartbeat))
			if tc.token != "" {
				request.Header.Set("Authorization", "Bearer "+tc.token)
			}
			s.routes().ServeHTTP(recorder, request)
			if recorder.Code != tc.code || !strings.Contains(recorder.Body.String(), tc.body) {
				t.Errorf("answer is %d %q, want %d with %q", recorder.Code, recorder.Body, tc.code, tc.body)
			}
		})
	}
}

func TestSetFaults(t *testing.T) {
	s := NewStatus("u", 1, time.Now)
	s.Update(func(p *contract.Progress) {
		p.Environments = []contract.EnvironmentMetrics{{Name: "a"}, {Name: "b"}}
	})
	s.SetFaults(map[string]string{"b": "it broke", "gone": "no such environment"})
	want := []contract.EnvironmentMetrics{{Name: "a"}, {Name: "b", Fault: "it broke"}}
	for name, got := range map[string]contract.Progress{"Progress": s.Progress(), "Reply": s.Reply("").Progress} {
		if diff := cmp.Diff(want, got.Environments); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

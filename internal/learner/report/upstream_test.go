// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// TestProblemOfWorkers checks that the problem of a worker is reported, in one line of bounded length, while the
// learner itself has no problem.
func TestProblemOfWorkers(t *testing.T) {
	now := time.Unix(0, 0)
	s := NewStatus("uid", 1, func() time.Time { return now })
	check := func(when string, code problem.Code, evidence string) {
		t.Helper()
		want := problem.Problem{Code: code, Evidence: evidence}
		if got, _ := s.Reply("").Problem(); got != want {
			t.Errorf("%s: problem is %+v, want %+v", when, got, want)
		}
	}
	const failed, other = "POST /api/v1/asample was answered with 500: no adapter",
		"POST /api/v1/optim_step was answered with 502"
	s.AddWorkersProblem(client.Problem{Code: problem.EndpointFailing, Op: "asample", Status: 500,
		Evidence: failed + "\nsecond line"})
	check("a worker's problem", problem.EndpointFailing, failed)
	s.AddWorkersProblem(client.Problem{Code: problem.EndpointFailing, Op: "asample", Status: 500,
		Evidence: "another request"})
	check("another request that fails alike", problem.EndpointFailing, failed)
	event := client.Event{Op: "optim_step", Category: tinker.CategoryServer, Method: http.MethodPost,
		Path: "/api/v1/optim_step", Status: 502}
	s.Observe(event)
	check("the learner's own problem", problem.EndpointFailing, other)
	event.Over = true
	s.Observe(event)
	check("when that is over", problem.EndpointFailing, failed)
	now = now.Add(workersProblemLasts)
	check("when workers report nothing more", "", "")
	s.AddWorkersProblem(client.Problem{Code: problem.EndpointFailing, Op: "asample", Status: 500,
		Evidence: strings.Repeat("x", 2*maxEvidence)})
	if found, _ := s.Reply("").Problem(); len(found.Evidence) > maxEvidence {
		t.Errorf("evidence has %d bytes, want %d at most", len(found.Evidence), maxEvidence)
	}
}

// TestEvidenceOfConcurrentFailures fails several operations at the same time, and checks that the reported evidence
// changes only when the endpoint fails in another way.
func TestEvidenceOfConcurrentFailures(t *testing.T) {
	now := time.Unix(0, 0)
	s := NewStatus("uid", 1, func() time.Time { return now })
	failing := func(op string, status int, reason string) client.Event {
		return client.Event{Op: op, Category: tinker.CategoryServer, Method: http.MethodPost, Path: "/" + op, Status: status,
			Reason: reason}
	}
	over := failing("asample", 0, "")
	over.Over = true
	for _, next := range []struct {
		event client.Event
		want  string
	}{
		{failing("optim_step", 500, "request 1"), "POST /optim_step was answered with 500: request 1"},
		{failing("optim_step", 500, "request 2"), "POST /optim_step was answered with 500: request 1"},
		{failing("asample", 500, "request 3"), "POST /optim_step was answered with 500: request 1"},
		{failing("optim_step", 502, "bad gateway"), "POST /optim_step was answered with 502: bad gateway"},
		{failing("asample", 500, "request 4"), "POST /optim_step was answered with 502: bad gateway"},
		{over, ""},
		{failing("asample", 500, "request 5"), "POST /asample was answered with 500: request 5"},
	} {
		now = now.Add(time.Second)
		s.Observe(next.event)
		if got, _ := s.Reply("").Problem(); got.Evidence != next.want {
			t.Errorf("evidence is %q, want %q", got.Evidence, next.want)
		}
	}
	for range 4 {
		now = now.Add(problemLasts / 3)
		s.Observe(failing("optim_step", 500, "request 6"))
	}
	if got, _ := s.Reply("").Problem(); got.Evidence != "POST /optim_step was answered with 500: request 6" {
		t.Errorf("evidence is %q long after its request failed last", got.Evidence)
	}
}

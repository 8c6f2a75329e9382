// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

const (
	// problemLasts is the time for which a problem counts that was not reported to be over. Retries come every 30 s at the
	// latest.
	problemLasts = 90 * time.Second
	// workersProblemLasts is the same for problems that workers report every few seconds.
	workersProblemLasts = 15 * time.Second
	// maxEvidence bounds a worker's evidence of a failed request, in bytes.
	maxEvidence = 512
)

// Observe records the problems that calls to the endpoint wait for.
func (s *Status) Observe(event client.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems.Observe(event, s.now())
	if event.Over {
		s.progressed = s.now()
	}
}

// AddProblem records a problem that others observed at the endpoint, with its evidence if there is any.
func (s *Status) AddProblem(found problem.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems.Add(client.Problem{Code: found.Code, Evidence: found.Evidence}, s.now())
}

// RemoveProblem records that a problem is over.
func (s *Status) RemoveProblem(code problem.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems.Remove(code)
}

// AddWorkersProblem records a problem that a worker reports of its requests to the endpoint.
func (s *Status) AddWorkersProblem(found client.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found.Evidence = httpstatus.FirstLine(found.Evidence, maxEvidence)
	s.workersProblems.Add(found, s.now())
}

// endpointProblem returns the newest problem at the endpoint, if there is any: the learner's own, or else one of the
// workers. The lock is held.
func (s *Status) endpointProblem() (problem.Problem, bool) {
	own, failing := s.problems.Newest(s.now())
	workers, workersFailing := s.workersProblems.Newest(s.now())
	if !failing || workersFailing && own.Evidence == "" && own.Code == workers.Code {
		own = workers
	}
	return problem.Problem{Code: own.Code, Evidence: own.Evidence}, failing || workersFailing
}

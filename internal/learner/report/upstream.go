// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

const (
	// problemLasts is how long a problem counts that was not reported to be over. Retries come every 30 s at the latest.
	problemLasts = 90 * time.Second
	// workersProblemLasts is the same for what workers report every few seconds while it lasts.
	workersProblemLasts = 15 * time.Second
	// maxEvidence bounds what a worker reports of a failed request, in bytes.
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
func (s *Status) AddProblem(kind, evidence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems.Add(client.Problem{Kind: kind, Evidence: evidence}, s.now())
}

// RemoveProblem records that a problem is over.
func (s *Status) RemoveProblem(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems.Remove(kind)
}

// AddWorkersProblem records what a worker reports of its requests to the endpoint.
func (s *Status) AddWorkersProblem(problem client.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	problem.Evidence = client.FirstLine(problem.Evidence, maxEvidence)
	s.workersProblems.Add(problem, s.now())
}

// upstream returns the kind and the evidence of the newest problem: the learner's own, or else one of the workers. The
// lock is held.
func (s *Status) upstream() (kind, evidence string) {
	own, failing := s.problems.Newest(s.now())
	workers, workersFailing := s.workersProblems.Newest(s.now())
	if !failing || workersFailing && own.Evidence == "" && own.Kind == workers.Kind {
		own = workers
	}
	return own.Kind, own.Evidence
}

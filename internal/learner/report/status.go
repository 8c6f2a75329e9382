// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package report has the learner's reports: the replies to heartbeats, and its metrics.
package report

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// Work is work that a learner repeats after a failure that no person has to repair.
type Work string

// The work of a learner: a model that replaces a discarded one, until a step succeeds, and an evaluation that failed
// and has no result.
const (
	Model      Work = "model"
	Evaluation Work = "evaluation"
)

// maxReplyMetrics limits the metrics of the newest step and evaluation in a reply, apart from its records. The status
// shows fewer.
const maxReplyMetrics = 64

// Status is the learner's state as heartbeats report it. It is safe for concurrent use.
type Status struct {
	now func() time.Time

	mu         sync.Mutex
	reply      contract.HeartbeatReply
	progressed time.Time
	problems   client.Problems
	// workersProblems are the problems that workers report.
	workersProblems client.Problems
	// blocked are the problems that last until they are reported to be over, by their codes or by the general codes of
	// finer ones, and failed the reasons for which work is done again.
	blocked map[problem.Code]problem.Problem
	failed  map[Work]string
	// faults are the newest faults by environment.
	faults  map[string]string
	records records
}

// NewStatus returns the status of an attempt that is opening.
func NewStatus(uid string, attempt int32, now func() time.Time) *Status {
	return &Status{
		now: now, progressed: now(), blocked: map[problem.Code]problem.Problem{}, failed: map[Work]string{},
		problems: client.Problems{Lasts: problemLasts}, workersProblems: client.Problems{Lasts: workersProblemLasts},
		reply: contract.HeartbeatReply{RunUID: uid, Attempt: attempt,
			Progress: contract.Progress{Phase: contract.PhaseOpening}},
	}
}

// Update changes the progress that is reported.
func (s *Status) Update(change func(*contract.Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.reply.Progress)
	s.reply.Sequence++
}

// Touch records that the run has made progress: a group was accepted or a step committed.
func (s *Status) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progressed = s.now()
}

// SetFaults reports the newest fault of each environment.
func (s *Status) SetFaults(faults map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// Block reports a problem of the learner's own files, or EndpointFailing: an endpoint with which no model makes
// progress. The problem lasts until it is reported without evidence.
func (s *Status) Block(code problem.Code, evidence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked[code] = problem.Problem{Code: code, Evidence: evidence}
}

// BlockBy does what Block does, with the finer code of a server whose certificate is not trusted. The problem lasts
// until it is reported without an error.
func (s *Status) BlockBy(code problem.Code, err error) {
	found := problem.Problem{Code: code}
	if err != nil {
		found = problem.Problem{Code: transport.Refine(code, err), Evidence: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked[code] = found
}

// Fail reports why work is done again; an empty text means that the work is done.
func (s *Status) Fail(work Work, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[work] = why
}

// Succeed reports that the model has made progress: what failed before it is over.
func (s *Status) Succeed() {
	s.Fail(Model, "")
	s.Block(problem.EndpointFailing, "")
}

// SetTracking reports the problems of the services that show the run's curves.
func (s *Status) SetTracking(problems []tracking.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply.Tracking = problems
	s.reply.Sequence++
}

// Progress returns a copy of the progress.
func (s *Status) Progress() contract.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	progress := s.reply.Progress
	progress.Metrics = maps.Clone(progress.Metrics)
	progress.Checkpoints = slices.Clone(progress.Checkpoints)
	progress.Environments = slices.Clone(progress.Environments)
	for i := range progress.Environments {
		progress.Environments[i].Fault = s.faults[progress.Environments[i].Name]
	}
	return progress
}

// Reply returns the reply to a heartbeat; waiting is the reason for which the loop waits, and observed are the
// problems of the workers and their environments.
func (s *Status) Reply(waiting string, observed ...problem.Problem) contract.HeartbeatReply {
	progress := s.Progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := s.reply
	progress.Metrics = contract.MainMetrics(progress.Metrics, maxReplyMetrics)
	reply.Progress = progress
	reply.SecondsSinceProgress = s.now().Sub(s.progressed).Seconds()
	found, any := s.endpointProblem()
	if any {
		reply.Problems = append(reply.Problems, found)
	}
	for _, code := range []problem.Code{problem.EndpointFailing, problem.ArtifactsBlocked, problem.TokenizerBlocked,
		problem.TemplateUnusable, problem.RowsBlocked} {
		if blocked := s.blocked[code]; blocked.Evidence != "" && (!any || code != found.Code) {
			reply.Problems = append(reply.Problems, blocked)
		}
	}
	reply.Problems = append(reply.Problems, observed...)
	reply.Waiting = waiting
	for _, work := range []Work{Evaluation, Model} {
		if why := s.failed[work]; why != "" {
			reply.Waiting = string(work) + ": " + why
		}
	}
	return reply
}

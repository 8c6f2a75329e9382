// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package report is what a learner reports of itself: the replies to heartbeats, and its metrics.
package report

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/tinker/upstream"
)

// Status is the learner's state as heartbeats report it. It is safe for concurrent use.
type Status struct {
	now func() time.Time

	mu         sync.Mutex
	reply      contract.HeartbeatReply
	progressed time.Time
	problems   upstream.Problems
	// workersProblems are those that workers report.
	workersProblems upstream.Problems
	// store and tokenizer describe why the artifact store and the tokenizer cannot be reached; empty if they can.
	store, tokenizer string
	// model describes why the last model was thrown away, until a step succeeds.
	model string
	// evaluation describes why an evaluation failed that is tried again.
	evaluation string
	records    records
}

// NewStatus returns the status of an attempt that is opening.
func NewStatus(uid string, attempt int32, now func() time.Time) *Status {
	return &Status{
		now: now, progressed: now(), problems: upstream.Problems{Lasts: problemLasts}, workersProblems: upstream.Problems{Lasts: workersProblemLasts},
		reply: contract.HeartbeatReply{RunUID: uid, Attempt: attempt, Progress: contract.Progress{Phase: contract.PhaseOpening}},
	}
}

// Update changes the progress that is reported.
func (s *Status) Update(change func(*contract.Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.reply.Progress)
	s.reply.Sequence++
}

// Touch records that the run has made progress: a state was loaded, a group accepted or a step committed.
func (s *Status) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progressed = s.now()
}

// BlockOnStore reports that the artifact store does not answer; an empty problem means that it does.
func (s *Status) BlockOnStore(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = problem
}

// BlockOnTokenizer reports that the tokenizer cannot be fetched; an empty problem means that it can.
func (s *Status) BlockOnTokenizer(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokenizer = problem
}

// BlockOnModel reports why a model was thrown away; an empty problem means that a step succeeded.
func (s *Status) BlockOnModel(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = problem
}

// BlockOnEvaluation reports why an evaluation failed; an empty problem means that one has its result.
func (s *Status) BlockOnEvaluation(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evaluation = problem
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
	return progress
}

// Reply returns the reply to a heartbeat; waiting is what the loop waits for.
func (s *Status) Reply(waiting string) contract.HeartbeatReply {
	progress := s.Progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := s.reply
	reply.Progress = progress
	reply.SecondsSinceProgress = s.now().Sub(s.progressed).Seconds()
	reply.Upstream, reply.UpstreamError = s.upstream()
	switch {
	case reply.Upstream != "":
		reply.BlockedOn = "endpoint: " + reply.Upstream
	case s.store != "":
		reply.BlockedOn = "artifacts: " + s.store
	case s.tokenizer != "":
		reply.BlockedOn = "tokenizer: " + s.tokenizer
	case s.model != "":
		reply.BlockedOn = "model: " + s.model
	case s.evaluation != "":
		reply.BlockedOn = "evaluation: " + s.evaluation
	default:
		reply.BlockedOn = waiting
	}
	return reply
}

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
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Status is the learner's state as heartbeats report it. It is safe for concurrent use.
type Status struct {
	now func() time.Time

	mu         sync.Mutex
	reply      contract.HeartbeatReply
	progressed time.Time
	// problems records when each kind of problem at the endpoint was last observed.
	problems map[string]time.Time
	// store and tokenizer describe why the artifact store and the tokenizer cannot be reached; empty if they can.
	store, tokenizer string
	// model describes why the last model was thrown away, until a step succeeds.
	model string
	// evaluation describes why an evaluation failed that is tried again.
	evaluation string
}

// NewStatus returns the status of an attempt that is opening.
func NewStatus(uid string, attempt int32, now func() time.Time) *Status {
	return &Status{
		now: now, progressed: now(), problems: map[string]time.Time{},
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
	reply.Upstream = s.upstream()
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

// problemLasts is how long a problem counts that was not reported to be over: a call that was abandoned reports
// nothing. Retries come every 30 s at the latest.
const problemLasts = 90 * time.Second

// upstream names the newest problem at the endpoint. The lock is held.
func (s *Status) upstream() string {
	newest, name := s.now().Add(-problemLasts), ""
	for _, kind := range slices.Sorted(maps.Keys(s.problems)) {
		if s.problems[kind].After(newest) {
			newest, name = s.problems[kind], kind
		}
	}
	return name
}

// Observe records the problems that calls to the endpoint wait for.
func (s *Status) Observe(event client.Event) {
	kind := upstreamKind(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.Over {
		delete(s.problems, kind)
		s.progressed = s.now()
		return
	}
	s.problems[kind] = s.now()
}

// AddProblem records a problem that workers observed at the endpoint.
func (s *Status) AddProblem(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems[kind] = s.now()
}

// RemoveProblem records that a problem is over.
func (s *Status) RemoveProblem(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.problems, kind)
}

func upstreamKind(event client.Event) string {
	switch event.Category {
	case tinker.CategoryThrottled:
		return "throttled"
	case tinker.CategoryPayment:
		return "payment"
	case tinker.CategoryPaused:
		return string(event.QueueState)
	case tinker.CategoryUnreachable:
		return "unreachable"
	default:
		return "server_error"
	}
}

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
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// What BlockedOn begins with after a model was thrown away, until a step succeeds, and while an evaluation that failed
// has no result.
const (
	BlockedOnModel      = "model: "
	BlockedOnEvaluation = "evaluation: "
)

// maxReplyMetrics is how many metrics of the newest step and evaluation a reply has besides its records. The status
// shows fewer.
const maxReplyMetrics = 64

// blocks are what a learner may wait for besides the endpoint, by how BlockedOn begins. The first that has a problem is
// reported.
var blocks = []string{contract.BlockedOnArtifacts, contract.BlockedOnTokenizer, BlockedOnModel, BlockedOnEvaluation}

// Status is the learner's state as heartbeats report it. It is safe for concurrent use.
type Status struct {
	now func() time.Time

	mu         sync.Mutex
	reply      contract.HeartbeatReply
	progressed time.Time
	problems   client.Problems
	// workersProblems are those that workers report.
	workersProblems client.Problems
	// blocked describes what the learner waits for, by one of blocks. A text that is empty means that it does not wait for
	// that.
	blocked map[string]string
	records records
}

// NewStatus returns the status of an attempt that is opening.
func NewStatus(uid string, attempt int32, now func() time.Time) *Status {
	return &Status{
		now: now, progressed: now(), blocked: map[string]string{},
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

// Block reports why the learner waits for one of blocks; an empty problem means that it does not.
func (s *Status) Block(on, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked[on] = problem
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
	progress.Metrics = contract.MainMetrics(progress.Metrics, maxReplyMetrics)
	reply.Progress = progress
	reply.SecondsSinceProgress = s.now().Sub(s.progressed).Seconds()
	reply.Upstream, reply.UpstreamError = s.upstream()
	switch i := slices.IndexFunc(blocks, func(on string) bool { return s.blocked[on] != "" }); {
	case reply.Upstream != "":
		reply.BlockedOn = "endpoint: " + reply.Upstream
	case i >= 0:
		reply.BlockedOn = blocks[i] + s.blocked[blocks[i]]
	default:
		reply.BlockedOn = waiting
	}
	return reply
}

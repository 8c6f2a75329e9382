// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// status is what the heartbeat says. It is safe for concurrent use.
type status struct {
	now func() time.Time

	mu         sync.Mutex
	reply      contract.HeartbeatReply
	progressed time.Time
	// trouble is when each kind of upstream trouble was last seen.
	trouble map[string]time.Time
	// store and hub are what is wrong with the artifact store and with the tokenizer's; empty for nothing.
	store, hub string
}

func newStatus(uid string, attempt int32, now func() time.Time) *status {
	return &status{
		now: now, progressed: now(), trouble: map[string]time.Time{},
		reply: contract.HeartbeatReply{RunUID: uid, Attempt: attempt, Progress: contract.Progress{Phase: contract.PhaseOpening}},
	}
}

// update changes the progress, which counts as progress.
func (s *status) update(change func(*contract.Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.reply.Progress)
	s.reply.Sequence++
	s.progressed = s.now()
}

// touch notes that something came along.
func (s *status) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progressed = s.now()
}

// blockOnStore says that the artifact store does not answer; empty when it does again.
func (s *status) blockOnStore(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = problem
}

// blockOnHub says that the tokenizer is not to be had; empty when it is.
func (s *status) blockOnHub(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub = problem
}

// progress gives a copy.
func (s *status) progress() contract.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	progress := s.reply.Progress
	progress.Metrics = maps.Clone(progress.Metrics)
	progress.Checkpoints = slices.Clone(progress.Checkpoints)
	progress.Environments = slices.Clone(progress.Environments)
	return progress
}

// snapshot answers a heartbeat; waiting says what the loop waits for.
func (s *status) snapshot(waiting string) contract.HeartbeatReply {
	progress := s.progress()
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
	case s.hub != "":
		reply.BlockedOn = "tokenizer: " + s.hub
	default:
		reply.BlockedOn = waiting
	}
	return reply
}

// troubleLasts is how long a trouble counts that nobody said to be over: a call that was given up says
// nothing. Retries come every 30 s at the latest.
const troubleLasts = 90 * time.Second

// upstream names the trouble that the endpoint is in, the newest first. The lock is held.
func (s *status) upstream() string {
	newest, name := s.now().Add(-troubleLasts), ""
	for _, kind := range slices.Sorted(maps.Keys(s.trouble)) {
		if s.trouble[kind].After(newest) {
			newest, name = s.trouble[kind], kind
		}
	}
	return name
}

// observe takes note of what calls to the endpoint wait out.
func (s *status) observe(event client.Event) {
	kind := upstreamKind(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.Over {
		delete(s.trouble, kind)
		s.progressed = s.now()
		return
	}
	s.trouble[kind] = s.now()
}

// throttle takes note of trouble that workers met.
func (s *status) throttle(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble[kind] = s.now()
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

// waiting puts what the loop waits for into words.
func (l *learner) waiting() string {
	if l.train == nil {
		return ""
	}
	if known, all := l.train.Progress(); known < all {
		return fmt.Sprintf("sampling: %d of %d groups", known, all)
	}
	return ""
}

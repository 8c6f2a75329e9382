// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// Sessions holds the sessions, and ends sessions that are idle for too long. It is safe for concurrent use.
type Sessions struct {
	clock   func() time.Time
	random  io.Reader
	timeout time.Duration
	// counters bill the usage of sessions.
	counters *stats.Counters

	mu   sync.Mutex // guards byID and the sessions in it
	byID map[string]*session
}

// session groups the models and sampling sessions of one client.
type session struct {
	id       string
	project  string
	metadata tinker.Metadata
	created  time.Time
	lastUsed time.Time
	finished bool
	models   map[int]accepted // by model_seq_id
	runs     []string
	samplers []string
	onEnd    []func() // remove the session's objects
}

// accepted identifies a request that was accepted, so that a repetition gets the same response.
type accepted struct {
	digest    digest
	requestID string
}

func newSessions(options Options, counters *stats.Counters) *Sessions {
	return &Sessions{clock: options.Clock, random: options.Random, timeout: options.SessionTimeout, counters: counters,
		byID: map[string]*session{}}
}

// Create creates a session.
func (s *Sessions) Create(req tinker.CreateSessionRequest) (tinker.CreateSessionResponse, error) {
	random, err := uuid.NewRandomFromReader(s.random)
	if err != nil {
		return tinker.CreateSessionResponse{}, fmt.Errorf("drawing a session id: %w", err)
	}
	id := random.String()
	s.endIdle()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	s.byID[id] = &session{
		id:       id,
		project:  req.ProjectID,
		metadata: req.UserMetadata,
		created:  now,
		lastUsed: now,
		models:   map[int]accepted{},
	}
	s.counters.OpenAccount(id, stats.Account{Project: req.ProjectID, Metadata: req.UserMetadata})
	return tinker.CreateSessionResponse{Type: tinker.TypeCreateSession, Session: id}, nil
}

// endIdle ends all sessions that were idle for too long.
func (s *Sessions) endIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	for _, other := range s.byID {
		s.endIfIdle(other, now)
	}
}

// use resets the idle time of a session and calls do with it, with the lock held.
func (s *Sessions) use(id string, do func(*session) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(id)
	if err != nil {
		return err
	}
	found.lastUsed = s.clock()
	return do(found)
}

// keepAlive resets the idle time of a session.
func (s *Sessions) keepAlive(id string) error {
	return s.use(id, func(*session) error { return nil })
}

// find returns a session that has not timed out. The caller holds the lock.
func (s *Sessions) find(id string) (*session, error) {
	found, ok := s.byID[id]
	if !ok || s.endIfIdle(found, s.clock()) {
		return nil, notFound("session", id)
	}
	return found, nil
}

// endIfIdle ends a session that was idle for too long and reports whether it did. The caller holds the lock.
func (s *Sessions) endIfIdle(idle *session, now time.Time) bool {
	if now.Sub(idle.lastUsed) <= s.timeout {
		return false
	}
	s.end(idle)
	return true
}

// end removes a session and everything that belongs to it. The caller holds the lock.
func (s *Sessions) end(ended *session) {
	delete(s.byID, ended.id)
	for _, remove := range ended.onEnd {
		remove()
	}
}

// Heartbeat keeps a session alive.
func (s *Sessions) Heartbeat(req tinker.SessionHeartbeat) (tinker.SessionHeartbeat, error) {
	err := s.use(req.Session, func(found *session) error {
		if found.finished {
			return &Error{Category: tinker.CategoryFutureLost, Message: fmt.Sprintf("session %s is finished", found.id)}
		}
		return nil
	})
	if err != nil {
		return tinker.SessionHeartbeat{}, err
	}
	return tinker.SessionHeartbeat{Type: tinker.TypeSessionHeartbeat}, nil
}

// Expire ends a session now.
func (s *Sessions) Expire(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byID[id]
	if !ok {
		return notFound("session", id)
	}
	s.end(found)
	return nil
}

// List returns the ids of all sessions, the newest first.
func (s *Sessions) List() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := slices.SortedFunc(maps.Values(s.byID), func(a, b *session) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.id, b.id))
	})
	ids := make([]string, len(sessions))
	for i, listed := range sessions {
		ids[i] = listed.id
	}
	return ids
}

// SessionInfo is the response of GET sessions/{id}. Newer versions of the API have the metadata.
type SessionInfo struct {
	tinker.SessionInfo
	UserMetadata tinker.Metadata `json:"user_metadata,omitempty"`
}

// Get describes a session. It does not keep the session alive.
func (s *Sessions) Get(id string) (SessionInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(id)
	if err != nil {
		return SessionInfo{}, err
	}
	info := tinker.SessionInfo{TrainingRunIDs: append([]string{}, found.runs...),
		SamplerIDs: append([]string{}, found.samplers...)}
	return SessionInfo{SessionInfo: info, UserMetadata: found.metadata}, nil
}

// SetProject sets the project of a session. Existing models keep theirs.
func (s *Sessions) SetProject(id, project string) error {
	return s.use(id, func(found *session) error {
		found.project = project
		s.counters.OpenAccount(id, stats.Account{Project: project, Metadata: found.metadata})
		return nil
	})
}

// Finish makes further heartbeats of a session fail. Its objects stay until it times out.
func (s *Sessions) Finish(id string) error {
	return s.use(id, func(found *session) error {
		found.finished = true
		return nil
	})
}

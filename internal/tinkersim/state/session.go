// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// session groups the models and sampling sessions of one client. It dies when nothing is heard of it.
type session struct {
	id       string
	project  string
	metadata tinker.Metadata
	created  time.Time
	seen     time.Time
	finished bool
	models   map[int]creation
	runs     []string
	samplers []string
}

// creation is what a create_model was answered with.
type creation struct {
	digest    digest
	requestID string
}

// CreateSession makes a session.
func (l *State) CreateSession(_ context.Context, req tinker.CreateSessionRequest) (tinker.CreateSessionResponse, error) {
	id, err := l.newID()
	if err != nil {
		return tinker.CreateSessionResponse{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock()
	for _, s := range l.sessions {
		l.dropIfDead(s, now)
	}
	l.sessions[id] = &session{
		id:       id,
		project:  req.ProjectID,
		metadata: req.UserMetadata,
		created:  now,
		seen:     now,
		models:   map[int]creation{},
	}
	return tinker.CreateSessionResponse{Type: tinker.TypeCreateSession, Session: id}, nil
}

// Heartbeat is a sign of life of a session.
func (l *State) Heartbeat(_ context.Context, req tinker.SessionHeartbeat) (tinker.SessionHeartbeat, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.touch(req.Session)
	if err != nil {
		return tinker.SessionHeartbeat{}, err
	}
	if s.finished {
		return tinker.SessionHeartbeat{}, &Error{Category: tinker.CategoryPromiseLost, Message: fmt.Sprintf("session %s is finished", s.id)}
	}
	return tinker.SessionHeartbeat{Type: tinker.TypeSessionHeartbeat}, nil
}

// touch returns a session that lives and notes its sign of life. The caller holds the mutex.
func (l *State) touch(id string) (*session, error) {
	s, ok := l.sessions[id]
	now := l.options.Clock()
	if !ok || l.dropIfDead(s, now) {
		return nil, notFound("session", id)
	}
	s.seen = now
	return s, nil
}

// dropIfDead forgets a session that was silent for too long, with all that belongs to it.
func (l *State) dropIfDead(s *session, now time.Time) bool {
	if now.Sub(s.seen) <= l.options.SessionTimeout {
		return false
	}
	l.drop(s)
	return true
}

func (l *State) drop(s *session) {
	delete(l.sessions, s.id)
	for _, id := range s.runs {
		if t, ok := l.trainers[id]; ok {
			t.cancel()
			delete(l.trainers, id)
		}
	}
	for _, id := range s.samplers {
		delete(l.samplers, id)
	}
}

// ExpireSession makes a session die now.
func (l *State) ExpireSession(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.sessions[id]
	if !ok {
		return notFound("session", id)
	}
	l.drop(s)
	return nil
}

// Sessions returns the ids of the sessions that live, the newest first.
func (l *State) Sessions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sessions := slices.SortedFunc(maps.Values(l.sessions), func(a, b *session) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.id, b.id))
	})
	ids := make([]string, len(sessions))
	for i, s := range sessions {
		ids[i] = s.id
	}
	return ids
}

// SessionInfo is the answer of GET sessions/{id}; the metadata are of newer versions of the API.
type SessionInfo struct {
	tinker.SessionInfo
	UserMetadata tinker.Metadata `json:"user_metadata,omitempty"`
}

// Session describes a session. To ask is no sign of life.
func (l *State) Session(id string) (SessionInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.sessions[id]
	if !ok || l.dropIfDead(s, l.options.Clock()) {
		return SessionInfo{}, notFound("session", id)
	}
	info := tinker.SessionInfo{TrainingRunIDs: append([]string{}, s.runs...), SamplerIDs: append([]string{}, s.samplers...)}
	return SessionInfo{SessionInfo: info, UserMetadata: s.metadata}, nil
}

// SetProject notes the project of a session. Models that exist keep theirs.
func (l *State) SetProject(id, project string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.touch(id)
	if err != nil {
		return err
	}
	s.project = project
	return nil
}

// FinishSession ends the heartbeats of a session. What belongs to it stays until it times out.
func (l *State) FinishSession(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.touch(id)
	if err != nil {
		return err
	}
	s.finished = true
	return nil
}

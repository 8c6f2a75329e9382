// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package openrewardtest is a server for tests that takes the rollouts of clients of OpenReward, and records their
// requests.
package openrewardtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
)

// Request is a request of a client.
type Request struct {
	Method, Path, Key string
	Body              []byte
}

// Event is an event of a rollout. Fields that only some events have are in Other.
type Event struct {
	ID      string `json:"eventId"`
	Type    string `json:"eventType"`
	Rollout string `json:"rolloutEventId"`
	Name    string `json:"rolloutName"`
	Index   int    `json:"index"`

	Other map[string]any `json:"-"`
}

// Rollout is the server's record of a rollout.
type Rollout struct {
	Event

	Messages []Event
}

// Server keeps rollouts. It does not add an event whose id it already has.
type Server struct {
	trackertest.Server[Request, []Event]

	// Key is the key that is accepted. If it is empty, any key is accepted.
	Key string

	rollouts []*Rollout
	known    map[string]bool
	// repeated are the ids of events that came again, and problems the violations of the protocol.
	repeated, problems []string
}

// New starts a server, which its caller closes.
func New() *Server {
	s := &Server{known: map[string]bool{}}
	s.Server.Server = httptest.NewServer(s)
	return s
}

// Rollouts returns the rollouts by their names.
func (s *Server) Rollouts() map[string]Rollout {
	s.Lock()
	defer s.Unlock()
	found := map[string]Rollout{}
	for _, r := range s.rollouts {
		found[r.Name] = Rollout{Event: r.Event, Messages: slices.Clone(r.Messages)}
	}
	return found
}

// Repeated returns the ids of events that came again.
func (s *Server) Repeated() []string {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.repeated)
}

// Problems returns the violations of the protocol by clients.
func (s *Server) Problems() []string {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.problems)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.Lock()
	defer s.Unlock()
	w.Header().Set("Content-Type", "application/json")
	s.Record(Request{r.Method, r.URL.Path, r.Header.Get("X-Api-Key"), body})
	switch {
	case strings.HasSuffix(r.URL.Path, "/variants"):
		fmt.Fprint(w, `[{"id": "other", "name": "easy"}, {"id": "variant-1", "name": "hard"}]`)
	case strings.HasPrefix(r.URL.Path, "/v1/environments/"):
		fmt.Fprint(w, `{"id": "environment-1"}`)
	case r.URL.Path != "/v1/rollouts":
		http.NotFound(w, r)
	case s.Key != "" && r.Header.Get("X-Api-Key") != s.Key:
		http.Error(w, `{"detail": "Invalid API key"}`, http.StatusUnauthorized)
	default:
		s.serveEvents(w, body)
	}
}

func (s *Server) serveEvents(w http.ResponseWriter, body []byte) {
	events, err := decode(body)
	if err != nil {
		s.problems = append(s.problems, err.Error())
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	fault := s.Fault(events)
	switch fault {
	case trackertest.Refuse:
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	case trackertest.Reject:
		http.Error(w, "invalid event", http.StatusBadRequest)
		return
	}
	if len(events) > 128 || len(events) > 1 && len(body) > 1_000_000+128 {
		s.problems = append(s.problems, fmt.Sprintf("a request has %d events and %d bytes", len(events), len(body)))
	}
	for _, event := range events {
		s.take(event, len(events) == 1)
	}
	if fault == trackertest.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(w, `{"status": "ok"}`)
}

func decode(body []byte) ([]Event, error) {
	var request struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, fmt.Errorf("decoding a request: %w", err)
	}
	var events []Event
	for _, data := range request.Events {
		var event Event
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, fmt.Errorf("decoding an event: %w", err)
		}
		if err := json.Unmarshal(data, &event.Other); err != nil {
			return nil, fmt.Errorf("decoding an event: %w", err)
		}
		events = append(events, event)
	}
	return events, nil
}

// take adds an event. alone says that its request has no other.
func (s *Server) take(event Event, alone bool) {
	if s.known[event.ID] {
		s.repeated = append(s.repeated, event.ID)
		return
	}
	s.known[event.ID] = true
	if event.Type == "rollout" {
		if !alone {
			s.problems = append(s.problems, "the beginning of a rollout is not sent alone")
		}
		s.rollouts = append(s.rollouts, &Rollout{Event: event})
		return
	}
	i := slices.IndexFunc(s.rollouts, func(r *Rollout) bool { return r.ID == event.Rollout })
	if i < 0 {
		s.problems = append(s.problems, "a message comes before the beginning of its rollout")
		return
	}
	s.rollouts[i].Messages = append(s.rollouts[i].Messages, event)
}

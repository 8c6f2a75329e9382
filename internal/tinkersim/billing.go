// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// The greatest window of a bill, and the hours that it is aligned to.
const (
	billHour   = time.Hour
	billWindow = 14 * 24 * time.Hour
)

// billEvent is the usage of one kind by a session in an hour. Nothing has a price.
type billEvent struct {
	Start     time.Time `json:"bucket_start"`
	End       time.Time `json:"bucket_end"`
	BaseModel string    `json:"base_model"`
	Session   *string   `json:"session_id"`
	Project   *string   `json:"project_id"`
	Info      billInfo  `json:"event_info"`
}

// billInfo has a count of checkpoints, or else of tokens.
type billInfo struct {
	Type   string `json:"type"`
	Cached *bool  `json:"cached,omitempty"`
	Tokens *int64 `json:"token_count,omitempty"`
	Count  *int64 `json:"count,omitempty"`
}

// billedSession is a session in a bill.
type billedSession struct {
	Metadata map[string]string `json:"user_metadata"`
}

// getBill answers with the usage of sessions, from the counters of the server.
func (s *Server) getBill(r *request) (response, error) {
	var window [2]time.Time
	for i, name := range []string{"starting_on", "ending_before"} {
		at, err := time.Parse(time.RFC3339, r.URL.Query().Get(name))
		if err != nil || !at.Equal(at.Truncate(billHour)) {
			return response{}, badRequest("%s must be the begin of an hour of UTC in RFC 3339", name)
		}
		window[i] = at
	}
	if length := window[1].Sub(window[0]); length <= 0 || length > billWindow {
		return response{}, badRequest("ending_before must be after starting_on, and at most 14 days")
	}
	used, accounts := s.counters.Bill(window[0], window[1])
	bill := struct {
		Data     []billEvent              `json:"data"`
		Sessions map[string]billedSession `json:"sessions"`
	}{[]billEvent{}, map[string]billedSession{}}
	for _, u := range used {
		bill.Data = append(bill.Data, eventOf(u, accounts[u.Session].Project))
	}
	for id, account := range accounts {
		bill.Sessions[id] = billedSession{account.Metadata}
	}
	return jsonResponse(http.StatusOK, bill)
}

func eventOf(u stats.Usage, project string) billEvent {
	event := billEvent{Start: u.Hour, End: u.Hour.Add(billHour), BaseModel: u.BaseModel, Info: billInfo{Type: u.Kind}}
	if u.Session != "" {
		event.Session = &u.Session
	}
	if project != "" {
		event.Project = &project
	}
	if u.Kind == stats.UsageCheckpoint {
		event.Info.Count = &u.Count
		return event
	}
	event.Info.Tokens = &u.Count
	if u.Kind == stats.UsagePrefill {
		event.Info.Cached = new(false)
	}
	return event
}

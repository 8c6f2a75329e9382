// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package wandbtest is a server that answers clients of Weights & Biases, keeps their runs, and records their requests.
package wandbtest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
)

// Entity is the default entity of every key.
const Entity = "team"

// Request is a request that was recorded.
type Request struct {
	Path          string          `json:"path"`
	Authorization string          `json:"authorization"`
	Body          json.RawMessage `json:"body"`
}

// Server keeps runs by their ids. It records the requests to the interface of GraphQL and to streams.
type Server struct {
	trackertest.Server[Request, string]

	// Key is the only key that is accepted. If it is empty, any key is accepted.
	Key string

	runs map[string]*run
}

// run is the server's record of a run.
type run struct {
	config, display, summary string
	history                  []string
}

// New starts a server, which its caller closes.
func New() *Server {
	s := &Server{runs: map[string]*run{}}
	s.Server.Server = httptest.NewServer(s)
	return s
}

// History returns the lines of a run.
func (s *Server) History(id string) []map[string]any {
	s.Lock()
	defer s.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil
	}
	lines := make([]map[string]any, len(r.history))
	for i, line := range r.history {
		if err := json.Unmarshal([]byte(line), &lines[i]); err != nil {
			panic("wandbtest: a line is not JSON: " + line)
		}
	}
	return lines
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.Lock()
	defer s.Unlock()
	fault := s.Fault(r.URL.Path)
	if _, key, _ := r.BasicAuth(); s.Key != "" && key != s.Key {
		http.Error(w, `{"errors":[{"message":"invalid API key"}]}`, http.StatusUnauthorized)
		return
	}
	if fault == trackertest.Refuse {
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	answer := s.answer(r, body)
	if fault == trackertest.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // A client that went away needs no answer.
}

func (s *Server) answer(r *http.Request, body []byte) any {
	stream := strings.HasSuffix(r.URL.Path, "/file_stream")
	if !stream && r.URL.Path != "/graphql" {
		return struct{}{} // telemetry, and files
	}
	s.Record(Request{Path: r.URL.Path, Authorization: r.Header.Get("Authorization"), Body: body})
	if stream {
		return s.stream(strings.Split(r.URL.Path, "/")[4], body)
	}
	var query struct {
		OperationName string
		Variables     map[string]any
	}
	if json.Unmarshal(body, &query) != nil {
		return errorsOf("the body is not a query")
	}
	switch query.OperationName {
	case "Viewer":
		return data("viewer", object{"id": "1", "entity": Entity, "username": "me", "email": "me@example.com", "flags": "{}",
			"teams": object{"edges": []any{}}})
	case "RunResumeStatus":
		return s.status(query.Variables)
	case "UpsertBucket":
		return s.upsert(query.Variables)
	case "CreateRunFiles":
		var files []any
		for _, name := range query.Variables["files"].([]any) {
			files = append(files, object{"name": name, "uploadUrl": s.URL + "/storage/" + name.(string)})
		}
		return data("createRunFiles", object{"runID": "B1", "uploadHeaders": []any{}, "files": files})
	default:
		return object{"data": object{}}
	}
}

// object is a JSON object.
type object = map[string]any

func data(name string, value any) object { return object{"data": object{name: value}} }

func errorsOf(message string) object {
	return object{"errors": []any{object{"message": message}}}
}

func (s *Server) status(variables object) any {
	id, _ := variables["name"].(string)
	var bucket any
	if r := s.runs[id]; r != nil {
		tail, _ := json.Marshal(r.history[max(0, len(r.history)-1):])
		bucket = object{
			"id": "B-" + id, "name": id, "displayName": r.display, "notes": nil, "tags": []any{}, "config": r.config,
			"summaryMetrics": r.summary, "wandbConfig": `{"t":1}`, "logLineCount": 0, "historyLineCount": len(r.history),
			"eventsLineCount": 0, "historyTail": string(tail), "eventsTail": "[]",
		}
	}
	return data("model", object{"id": "P", "name": variables["project"], "entity": object{"id": "E", "name": Entity},
		"bucket": bucket})
}

func (s *Server) upsert(variables object) any {
	id, _ := variables["name"].(string)
	r, known := s.runs[id]
	if !known {
		r = &run{config: "{}", summary: "{}"}
		s.runs[id] = r
	}
	if config, ok := variables["config"].(string); ok {
		r.config = config
	}
	if display, ok := variables["displayName"].(string); ok {
		r.display = display
	}
	entity, _ := variables["entity"].(string)
	return data("upsertBucket", object{"inserted": !known, "bucket": object{
		"id": "B-" + id, "name": id, "displayName": r.display, "description": "", "config": r.config, "sweepName": nil,
		"project": object{"id": "P", "name": variables["project"],
			"entity": object{"id": "E", "name": cmp.Or(entity, Entity)}},
		"historyLineCount": len(r.history),
	}})
}

// stream adds lines to the history of a run at their offset, as the service does.
func (s *Server) stream(id string, body []byte) any {
	var request struct {
		Files map[string]struct {
			Offset  int
			Content []string
		}
	}
	r := s.runs[id]
	if json.Unmarshal(body, &request) != nil || r == nil {
		return errorsOf("the run does not exist")
	}
	if history, ok := request.Files["wandb-history.jsonl"]; ok && history.Offset <= len(r.history) {
		r.history = append(r.history[:history.Offset], history.Content...)
	}
	if summary, ok := request.Files["wandb-summary.json"]; ok {
		r.summary = summary.Content[0]
	}
	return struct{}{}
}

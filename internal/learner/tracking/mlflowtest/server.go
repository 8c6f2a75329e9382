// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package mlflowtest is a server for tests that speaks the part of MLflow's REST interface that a sink needs, and
// records the requests of clients.
package mlflowtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
)

// Root is the path of the interface.
const Root = "/api/2.0/mlflow"

// Request is a request of a client.
type Request struct {
	Method, Path, Query, Authorization string
	Body                               []byte
}

// Metric is a value of a metric.
type Metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"`
	Step      int64   `json:"step"`
}

// Pair is a tag or a parameter.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Run is the server's record of a run.
type Run struct {
	ID, Experiment, Name, Status string
	Params, Tags                 map[string]string
	// Metrics are in the order in which they were added.
	Metrics []Metric
}

// Server keeps experiments and runs.
type Server struct {
	trackertest.Server[Request, string]

	// Authorization is the header that is accepted. If it is empty, any header is accepted.
	Authorization string

	experiments []string
	runs        []*Run
}

// New starts a server, which its caller closes.
func New() *Server {
	s := &Server{}
	s.Server.Server = httptest.NewServer(s)
	return s
}

// Runs returns copies of the runs in the order of their creation.
func (s *Server) Runs() []Run {
	s.Lock()
	defer s.Unlock()
	var list []Run
	for _, r := range s.runs {
		list = append(list, *r)
	}
	return list
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.Lock()
	defer s.Unlock()
	path := strings.TrimPrefix(r.URL.Path, Root)
	fault := s.Fault(path)
	if s.Authorization != "" && r.Header.Get("Authorization") != s.Authorization {
		http.Error(w, "You are not authenticated.", http.StatusUnauthorized)
		return
	}
	if fault == trackertest.Refuse {
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	s.Record(Request{r.Method, path, r.URL.RawQuery, r.Header.Get("Authorization"), body})
	status, answer := s.answer(path, r.URL.Query().Get("experiment_name"), body, fault == trackertest.LosePart)
	if fault != trackertest.None {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // A client that went away needs no answer.
}

// object is a JSON object.
type object = map[string]any

// request has the fields of all requests.
type request struct {
	Name          string   `json:"name"`
	ExperimentID  string   `json:"experiment_id"`
	ExperimentIDs []string `json:"experiment_ids"`
	Filter        string   `json:"filter"`
	RunID         string   `json:"run_id"`
	RunName       string   `json:"run_name"`
	Status        string   `json:"status"`
	EndTime       int64    `json:"end_time"`
	Metrics       []Metric `json:"metrics"`
	Params        []Pair   `json:"params"`
	Tags          []Pair   `json:"tags"`
}

func (s *Server) answer(path, name string, body []byte, half bool) (int, any) {
	var r request
	if len(body) > 0 && json.Unmarshal(body, &r) != nil {
		return errorOf(http.StatusBadRequest, "BAD_REQUEST", "the body is not JSON")
	}
	switch path {
	case "/experiments/get-by-name":
		for i, e := range s.experiments {
			if e == name {
				return http.StatusOK, object{"experiment": object{"experiment_id": strconv.Itoa(i + 1), "name": e,
					"lifecycle_stage": "active"}}
			}
		}
		return errorOf(http.StatusNotFound, "RESOURCE_DOES_NOT_EXIST", "Could not find experiment with name '"+name+"'")
	case "/experiments/create":
		s.experiments = append(s.experiments, r.Name)
		return http.StatusOK, object{"experiment_id": strconv.Itoa(len(s.experiments))}
	case "/runs/search":
		return http.StatusOK, s.search(r)
	case "/runs/create":
		made := &Run{
			ID: fmt.Sprintf("run%d", len(s.runs)+1), Experiment: r.ExperimentID, Name: r.RunName, Status: "RUNNING",
			Params: map[string]string{}, Tags: map[string]string{},
		}
		addPairs(made.Tags, r.Tags)
		s.runs = append(s.runs, made)
		return http.StatusOK, object{"run": made.json()}
	}
	return s.change(path, r, half)
}

// change changes a run.
func (s *Server) change(path string, r request, half bool) (int, any) {
	for _, run := range s.runs {
		if run.ID != r.RunID {
			continue
		}
		switch path {
		case "/runs/update":
			run.Status = r.Status
		case "/runs/log-batch":
			if len(r.Metrics) > 1000 || len(r.Params) > 100 {
				return errorOf(http.StatusBadRequest, "INVALID_PARAMETER_VALUE", "the batch is too large")
			}
			if half {
				r.Metrics, r.Params = r.Metrics[:len(r.Metrics)/2], r.Params[:len(r.Params)/2]
			}
			for _, p := range r.Params {
				if value, known := run.Params[p.Key]; known && value != p.Value {
					return errorOf(http.StatusBadRequest, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed.")
				}
			}
			addPairs(run.Params, r.Params)
			run.Metrics = append(run.Metrics, r.Metrics...)
		default:
			return errorOf(http.StatusNotFound, "ENDPOINT_NOT_FOUND", path)
		}
		return http.StatusOK, object{}
	}
	return errorOf(http.StatusNotFound, "RESOURCE_DOES_NOT_EXIST", "Run with id="+r.RunID+" not found")
}

func addPairs(to map[string]string, pairs []Pair) {
	for _, p := range pairs {
		to[p.Key] = p.Value
	}
}

func errorOf(status int, code, message string) (int, any) {
	return status, object{"error_code": code, "message": message}
}

// search returns the runs with a tag, by a filter of the form tags.`KEY` = 'VALUE'.
func (s *Server) search(r request) object {
	key, value, _ := strings.Cut(strings.TrimPrefix(r.Filter, "tags.`"), "` = '")
	var found []any
	for _, run := range s.runs {
		if run.Tags[key] == strings.TrimSuffix(value, "'") && len(r.ExperimentIDs) == 1 &&
			run.Experiment == r.ExperimentIDs[0] {
			found = append(found, run.json())
		}
	}
	return object{"runs": found}
}

// json returns a run with the newest value of each metric, as the service does.
func (r *Run) json() object {
	newest := map[string]Metric{}
	for _, m := range r.Metrics {
		if former, known := newest[m.Key]; !known || former.Step <= m.Step {
			newest[m.Key] = m
		}
	}
	var metrics []Metric
	for _, m := range newest {
		metrics = append(metrics, m)
	}
	var params []Pair
	for key, value := range r.Params {
		params = append(params, Pair{key, value})
	}
	return object{"info": object{"run_id": r.ID, "run_name": r.Name, "status": r.Status},
		"data": object{"metrics": metrics, "params": params}}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const api = "/api/v1/"

// skyRL behaves like SkyRL 0.3.0 with its JAX backend. It differs from the API in these points:
//
//   - Bodies and results are JSON. Unknown fields are ignored, among them seq_id, model_seq_id and the number of a
//     sampling session: operations are executed in the order of arrival, and a request that is posted twice is
//     executed twice.
//   - Gradients are averaged: first over the tokens of a sequence, and then over the sequences.
//   - A failed future is 400 from retrieve_future. Polls are held for five minutes, and then answered 408.
//   - A name that is taken is 409. A sampler's path has no kind. The optimizer is always restored.
//   - A sampler is not a snapshot. A sample loads its weights into the model that trains, unless they are those that
//     were loaded last; from then on it samples the newest weights of its model. The optimizer stays as it is. A model
//     that is not loaded is not sampled.
//   - grad_clip_norm, the train_* flags, metadata and TTLs are ignored. There are no metrics of a loss.
//   - Seeds of more than 31 bits fail.
//   - There is no listing of a user's checkpoints, no delete, no sessions, and no dro.
//
// The dialect averages over tokens; the state of the simulator averages over sequences.
type skyRL struct {
	inner
	options Options

	mu sync.Mutex
	// nextModel numbers the models of a session, and nextOperation the operations of a model.
	nextModel     map[string]int
	nextOperation map[string]int64
	// taken are the names of checkpoints that were posted.
	taken map[tinker.Path]bool
	// newest are the weights that a model's samplers sample, and stale says that the model has moved on from them.
	newest map[string]string
	stale  map[string]bool
	// sampler is the path of the sampler that was loaded last.
	sampler map[string]string
	// loaded is the path of the state that was loaded into a model.
	loaded map[string]string
	// unloaded are the models that were unloaded, and refused the futures of operations of such models.
	unloaded map[string]bool
	refused  map[string]string
	// passes are the newest passes by the ids of their futures, and passOrder these ids, the oldest first.
	passes    map[string]pass
	passOrder []string
	// samplers are the sampling sessions by id, and innerSamplers the simulator's own by path.
	samplers      map[string]samplerSource
	innerSamplers map[string]string
}

// samplerSource is the source of a sampling session: a base model, or a model with its sampler weights.
type samplerSource struct{ session, base, path, model string }

func newSkyRL(handler http.Handler, options Options) *skyRL {
	if options.PollHold == 0 {
		options.PollHold = 300 * time.Second
	}
	return &skyRL{
		inner: inner{handler}, options: options,
		nextModel: map[string]int{}, nextOperation: map[string]int64{}, taken: map[tinker.Path]bool{},
		newest: map[string]string{},
		stale:  map[string]bool{}, sampler: map[string]string{}, loaded: map[string]string{}, unloaded: map[string]bool{},
		refused: map[string]string{}, passes: map[string]pass{},
		samplers: map[string]samplerSource{}, innerSamplers: map[string]string{},
	}
}

// httpError is a response with an error.
type httpError struct {
	status int
	detail any
}

func failf(status int, format string, args ...any) *httpError {
	return &httpError{status, fmt.Sprintf(format, args...)}
}

// unprocessable is the response to a body whose field at a path has a problem.
func unprocessable(message, kind string, path ...string) *httpError {
	return &httpError{http.StatusUnprocessableEntity,
		[]tinker.ValidationIssue{{Loc: append([]string{"body"}, path...), Msg: message, Type: kind}}}
}

// route is a row of the table of endpoints.
type route func(s *skyRL, r *http.Request, body object) (any, *httpError)

var routes = map[string]route{
	"POST client/config": func(s *skyRL, r *http.Request, body object) (any, *httpError) {
		if _, err := s.pass(r, body); err != nil {
			return nil, err
		}
		return object{"pjwt_auth_enabled": json.RawMessage("false")}, nil
	},
	"POST create_session":           without("user_metadata"),
	"POST session_heartbeat":        without(),
	"POST get_info":                 keeping("model_id", "model_data"),
	"POST weights_info":             keeping("base_model", "is_lora", "lora_rank"),
	"POST telemetry":                without(),
	"GET healthz":                   without(),
	"GET get_server_capabilities":   without(),
	"GET training_runs":             (*skyRL).trainingRuns,
	"POST create_model":             (*skyRL).createModel,
	"POST unload_model":             (*skyRL).unload,
	"POST forward_backward":         (*skyRL).forwardBackward,
	"POST forward":                  (*skyRL).forwardBackward,
	"POST optim_step":               (*skyRL).optimStep,
	"POST save_weights":             (*skyRL).save,
	"POST save_weights_for_sampler": (*skyRL).save,
	"POST load_weights":             (*skyRL).load,
	"POST create_sampling_session":  (*skyRL).createSamplingSession,
	"POST asample":                  (*skyRL).sample,
	"POST retrieve_future":          (*skyRL).retrieve,
}

// ServeHTTP serves a request.
func (s *skyRL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, isAPI := strings.CutPrefix(r.URL.Path, api)
	if !isAPI {
		s.inner.ServeHTTP(w, r) // files of tokenizers, and the administration
		return
	}
	if refusesProtobuf(w, r) {
		return
	}
	if r.Method == http.MethodGet && strings.HasSuffix(name, "/archive") {
		// SkyRL only has archives of samplers; archives of states let tests compare weights.
		r.URL.Path = string(innerIDs([]byte(r.URL.Path)))
		s.inner.ServeHTTP(w, r)
		return
	}
	endpoint, known := routes[r.Method+" "+name]
	if run, ok := strings.CutPrefix(name, "training_runs/"); ok && r.Method == http.MethodGet && isRunPath(run) {
		endpoint, known = (*skyRL).trainingRun, true
	}
	if !known {
		answer(w, http.StatusNotFound, tinker.ErrorResponse{Detail: "Not Found"})
		return
	}
	text, err := io.ReadAll(r.Body)
	body := object{}
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		answer(w, http.StatusUnprocessableEntity,
			tinker.ErrorResponse{Detail: []tinker.ValidationIssue{{Loc: []string{"body"}, Msg: "JSON decode error",
				Type: "json_invalid"}}})
		return
	}
	value, failed := endpoint(s, r, body)
	if failed != nil {
		answer(w, failed.status, tinker.ErrorResponse{Detail: failed.detail})
		return
	}
	answer(w, http.StatusOK, value)
}

// isRunPath reports whether the rest of a path is RUN or RUN/checkpoints.
func isRunPath(rest string) bool {
	return !strings.Contains(strings.TrimSuffix(rest, "/checkpoints"), "/")
}

// without returns a route that the simulator serves, without the fields that SkyRL does not know.
func without(fields ...string) route {
	return func(s *skyRL, r *http.Request, body object) (any, *httpError) {
		for _, field := range fields {
			delete(body, field)
		}
		return s.pass(r, body)
	}
}

// keeping returns a route that the simulator serves, with some members of the answer.
func keeping(members ...string) route {
	return func(s *skyRL, r *http.Request, body object) (any, *httpError) {
		value, err := s.pass(r, body)
		if err != nil {
			return nil, err
		}
		kept := object{}
		for _, name := range members {
			kept[name] = value[name]
		}
		if name, ok := kept["model_data"]; ok {
			var model struct {
				Name string `json:"model_name"`
			}
			_ = json.Unmarshal(name, &model)
			kept.set("model_data", map[string]string{"model_name": model.Name, "base_model": model.Name})
		}
		return kept, nil
	}
}

// pass sends a request on to the simulator.
func (s *skyRL) pass(r *http.Request, body object) (object, *httpError) {
	return result(s.call(r, r.Method, r.URL.Path, body))
}

// post sends another request to the simulator.
func (s *skyRL) post(r *http.Request, name string, body object) (object, *httpError) {
	return result(s.call(r, http.MethodPost, api+name, body))
}

func result(reply reply) (object, *httpError) {
	value := reply.object()
	if reply.status/100 != 2 {
		return nil, &httpError{reply.status, value["detail"]}
	}
	return value, nil
}

// future is the response to a submit.
func future(accepted object, err *httpError) (any, *httpError) {
	if err != nil {
		return nil, err
	}
	id := accepted.text("request_id")
	return map[string]string{"future_id": id, "status": "pending", "request_id": id}, nil
}

// submit forwards an operation to the simulator, after the operations that arrived before it. SkyRL accepts operations
// of models that are unloaded, and fails them later.
func (s *skyRL) submit(r *http.Request, model string, body object) (any, *httpError) {
	if s.unloaded[model] {
		return s.refuse(model), nil
	}
	s.number(model, body)
	return future(s.pass(r, body))
}

// refuse returns a future that fails because the model is not loaded.
func (s *skyRL) refuse(model string) any {
	return s.refuseFor(fmt.Sprintf("Model %s not loaded (likely stale request from previous server)", model))
}

// refuseFor returns a future that fails for a reason.
func (s *skyRL) refuseFor(reason string) any {
	id := fmt.Sprintf("refused-%d", len(s.refused))
	s.refused[id] = reason
	return map[string]string{"future_id": id, "status": "pending", "request_id": id}
}

func (s *skyRL) unload(r *http.Request, body object) (any, *httpError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unloaded[body.text("model_id")] = true
	return s.pass(r, body)
}

// number sets the place of an operation, which is the place of its arrival.
func (s *skyRL) number(model string, body object) {
	s.nextOperation[model]++
	body.set("seq_id", s.nextOperation[model])
}

func (s *skyRL) createModel(r *http.Request, body object) (any, *httpError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := body.text("session_id")
	var lora struct {
		Rank int    `json:"rank"`
		Seed *int64 `json:"seed,omitempty"`
	}
	if err := json.Unmarshal(body["lora_config"], &lora); err != nil || lora.Rank == 0 {
		return nil, unprocessable("Field required", "missing", "lora_config", "rank")
	}
	body.set("lora_config", lora)
	body.set("model_seq_id", s.nextModel[session])
	delete(body, "user_metadata")
	created, err := s.pass(r, body)
	if err != nil {
		return nil, err
	}
	s.nextModel[session]++
	model := created.text("model_id")
	return map[string]any{
		"model_id": model, "base_model": body["base_model"], "lora_config": lora, "status": "created",
		"request_id": created["request_id"],
	}, nil
}

func (s *skyRL) save(r *http.Request, body object) (any, *httpError) {
	model, name := body.text("model_id"), body.text("path")
	at := tinker.Path{Run: model, Kind: tinker.KindState, Name: name}
	if strings.HasSuffix(r.URL.Path, "_for_sampler") {
		at.Kind = tinker.KindSampler
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[at] {
		return nil, failf(http.StatusConflict, "Checkpoint '%s' already exists for model '%s'", name, model)
	}
	for _, ignored := range []string{"ttl_seconds", "overwrite", "user_metadata"} {
		delete(body, ignored)
	}
	accepted, err := s.submit(r, model, body)
	if err != nil {
		return nil, err
	}
	s.taken[at] = true
	return accepted, nil
}

func (s *skyRL) load(r *http.Request, body object) (any, *httpError) {
	info := object{}
	info.set("tinker_path", body.text("path"))
	if _, err := s.post(r, "weights_info", info); err != nil {
		return nil, err
	}
	body.set("optimizer", true)
	s.mu.Lock()
	defer s.mu.Unlock()
	model := body.text("model_id")
	s.stale[model] = true
	if s.nextOperation[model] == 1 && s.loaded[model] == body.text("path") {
		s.nextOperation[model] = 0 // loading the same state once more changes nothing
	}
	s.loaded[model] = body.text("path")
	return s.submit(r, model, body)
}

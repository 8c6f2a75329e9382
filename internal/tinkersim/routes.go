// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// routes builds the handler from the table of endpoints.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	table := slices.Concat(s.serviceRoutes(), sessionRoutes(), trainingRoutes(), s.listingRoutes(), s.hubRoutes())
	if s.options.Admin {
		table = append(table, s.adminRoutes()...)
	}
	for _, e := range table {
		mux.Handle(e.pattern, s.handler(e))
	}
	// Any other path must be a 404 in the format of the API, not a 405 because a pattern for another method matches.
	mux.Handle("/", s.handler(simpleEndpoint("/", "", func(r *request) (response, error) {
		return response{}, newHTTPError(http.StatusNotFound, "%s %s does not exist", r.Method, r.URL.Path)
	}).asPublic()))
	return mux
}

// serviceRoutes are the endpoints of the server itself.
func (s *Server) serviceRoutes() []endpoint {
	healthy := func(*request) (response, error) { return jsonResponse(http.StatusOK, tinker.Health{Status: "ok"}) }
	return []endpoint{
		simpleEndpoint("GET /healthz", "", healthy).asPublic(),
		simpleEndpoint("GET /api/v1/healthz", "", healthy).asPublic(),
		simpleEndpoint("POST /api/v1/client/config", "client_config", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, s.options.Config)
		}),
		simpleEndpoint("POST /api/v1/client/dynamic_config", "client_dynamic_config", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, tinker.DynamicConfig{RefreshIntervalSec: 300, SampleCancelEnabled: true})
		}),
		simpleEndpoint("POST /api/v1/auth/token", "auth_token", s.exchangeKey),
		simpleEndpoint("GET /api/v1/get_server_capabilities", "get_server_capabilities", func(r *request) (response, error) {
			return jsonResponse(http.StatusOK, r.state.Capabilities())
		}),
		simpleEndpoint("POST /api/v1/telemetry", "telemetry", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, tinker.TelemetryResponse{Status: "accepted"})
		}),
		simpleEndpoint("POST /api/v1/retrieve_future", "retrieve_future", s.retrieve),
		simpleEndpoint("POST /api/v1/cancel_future", "cancel_future", cancelFuture),
	}
}

// The parts of the state that serve the endpoints.
func sessions(s *state.State) *state.Sessions       { return s.Sessions }
func models(s *state.State) *state.Models           { return s.Models }
func samplers(s *state.State) *state.Samplers       { return s.Samplers }
func checkpoints(s *state.State) *state.Checkpoints { return s.Checkpoints }

// sessionRoutes are the endpoints of sessions and of sampling.
func sessionRoutes() []endpoint {
	return []endpoint{
		jsonEndpoint("create_session", func(tinker.CreateSessionRequest) fault.Call { return fault.Call{} }, sessions,
			(*state.Sessions).Create),
		jsonEndpoint("session_heartbeat", func(r tinker.SessionHeartbeat) fault.Call {
			return fault.Call{Session: r.Session}
		}, sessions, (*state.Sessions).Heartbeat),
		jsonEndpoint("create_sampling_session", func(r tinker.CreateSamplingSessionRequest) fault.Call {
			return fault.Call{Session: r.Session, Seq: r.Seq, Name: r.ModelPath}
		}, samplers, (*state.Samplers).Create),
		jsonEndpoint(state.OpSample, func(r tinker.SampleRequest) fault.Call {
			return fault.Call{Session: r.SamplingSession, Seq: valueOrZero(r.SeqID), Name: r.ModelPath}
		}, samplers, (*state.Samplers).Sample).knownOptionsOnly(),
		simpleEndpoint("GET /api/v1/samplers/{id}", "get_sampler", func(r *request) (response, error) {
			return jsonOrError(r.state.Samplers.Info(r.PathValue("id")))
		}),
		simpleEndpoint("GET /api/v1/sessions", "list_sessions", getSessions),
		simpleEndpoint("GET /api/v1/sessions/{id}", "get_session", func(r *request) (response, error) {
			return jsonOrError(r.state.Sessions.Get(r.PathValue("id")))
		}),
		simpleEndpoint("PUT /api/v1/sessions/{id}/project", "set_project", func(r *request) (response, error) {
			var req struct {
				Project string `json:"project_id"`
			}
			if err := decode(r.body, &req); err != nil {
				return response{}, err
			}
			return response{}, r.state.Sessions.SetProject(r.PathValue("id"), req.Project)
		}),
		simpleEndpoint("POST /api/v1/sessions/{id}/finish", "finish_session", func(r *request) (response, error) {
			return response{}, r.state.Sessions.Finish(r.PathValue("id"))
		}),
	}
}

// trainingRoutes are the endpoints of models.
func trainingRoutes() []endpoint {
	return []endpoint{
		jsonEndpoint(tinker.TypeCreateModel, func(r tinker.CreateModelRequest) fault.Call {
			return fault.Call{Session: r.Session}
		}, models, (*state.Models).Create).adamOnly(),
		jsonEndpoint(tinker.TypeUnloadModel, modelCall, models, (*state.Models).Unload),
		jsonEndpoint(tinker.TypeGetInfo, modelCall, models, (*state.Models).Info),
		{pattern: "POST /api/v1/forward_backward", op: state.OpForwardBackward, read: readData},
		{pattern: "POST /api/v1/forward", op: state.OpForward, read: readData},
		jsonEndpoint(tinker.TypeOptimStep, func(r tinker.OptimStepRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID}
		}, models, (*state.Models).OptimStep).adamOnly(),
		jsonEndpoint(tinker.TypeSaveWeights, func(r tinker.SaveWeightsRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, models, (*state.Models).SaveWeights),
		jsonEndpoint(tinker.TypeSaveSampler, func(r tinker.SaveSamplerRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, models, (*state.Models).SaveSampler),
		jsonEndpoint(tinker.TypeSaveExternal, func(r tinker.SaveExternalRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, models, (*state.Models).SaveExternal),
		jsonEndpoint(tinker.TypeLoadWeights, func(r tinker.LoadWeightsRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, models, (*state.Models).LoadState).adamOnly(),
	}
}

func modelCall(r tinker.ModelRequest) fault.Call { return fault.Call{Model: r.ModelID} }

// listingRoutes are the endpoints of runs and checkpoints.
func (s *Server) listingRoutes() []endpoint {
	const below = " /api/v1/training_runs/{run}/checkpoints/{rest...}"
	return []endpoint{
		jsonEndpoint("weights_info", func(r tinker.WeightsInfoRequest) fault.Call {
			return fault.Call{Name: r.TinkerPath}
		}, checkpoints, (*state.Checkpoints).WeightsInfo),
		simpleEndpoint("GET /api/v1/training_runs", "list_training_runs", getRuns),
		simpleEndpoint("GET /api/v1/training_runs/{run}", "get_training_run", getRun),
		simpleEndpoint("GET /api/v1/training_runs/{run}/checkpoints", "list_run_checkpoints", getRunCheckpoints),
		simpleEndpoint("GET /api/v1/checkpoints", "list_checkpoints", getCheckpoints),
		simpleEndpoint("GET /api/v1/billing/usage/events", "billing_usage", s.getBill),
		{pattern: "GET" + below, op: "archive", read: s.readEdit},
		{pattern: "POST" + below, op: "publish", read: s.readEdit},
		{pattern: "PUT" + below, op: "ttl", read: s.readEdit},
		{pattern: "DELETE" + below, op: "delete_checkpoint", read: s.readEdit},
		simpleEndpoint("GET /archives/{token}", "", downloads{s}.downloadArchive).asPublic(),
	}
}

// hubRoutes are the endpoints of a Hugging Face hub. GET includes HEAD.
func (s *Server) hubRoutes() []endpoint {
	return []endpoint{simpleEndpoint("GET /{org}/{model}/resolve/{revision}/{file}", "", s.tokenizerFile).asPublic()}
}

// asPublic returns a copy of the endpoint that needs no key.
func (e endpoint) asPublic() endpoint {
	e.public = true
	return e
}

// jsonOrError returns the error, or else a response with the JSON form of a value.
func jsonOrError(value any, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	return jsonResponse(http.StatusOK, value)
}

func valueOrZero(seq *int64) int64 {
	if seq == nil {
		return 0
	}
	return *seq
}

// readData is the read function of forward_backward and forward, whose bodies are protobuf or, from clients before
// 0.25, JSON.
func readData(r *request) (fault.Call, action, error) {
	req, err := decodeData(r)
	if err != nil {
		return fault.Call{}, nil, err
	}
	call := fault.Call{Op: state.OpOf(req), Model: req.ModelID, Seq: req.SeqID}
	return call, func() (response, error) {
		return jsonOrError(r.state.Models.ForwardBackward(req))
	}, nil
}

func decodeData(r *request) (tinker.ForwardBackwardRequest, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == tinker.ContentProtobuf {
		req, err := tinker.DecodeForwardBackward(r.body)
		if err != nil {
			return req, badRequest("%s", err)
		}
		return req, nil
	}
	var req tinker.ForwardBackwardJSON
	if err := json.Unmarshal(r.body, &req); err != nil {
		return tinker.ForwardBackwardRequest{}, decode(r.body, &req)
	}
	input, forward := req.Backward, false
	if input == nil {
		input, forward = req.Forward, true
	}
	if input == nil {
		return tinker.ForwardBackwardRequest{}, badRequest("forward_backward_input is missing")
	}
	return tinker.ForwardBackwardRequest{
		ModelID: req.ModelID, SeqID: req.SeqID, ForwardOnly: forward, Data: input.Data,
		Loss: tinker.Loss{Name: input.LossFn, Config: input.LossFnConfig},
	}, nil
}

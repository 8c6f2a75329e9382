// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"context"
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
	// What is not here at all must be a 404 in the API's form, not a 405 because of a neighbour's pattern.
	mux.Handle("/", s.handler(simpleEndpoint("/", "", func(r *request) (response, error) {
		return response{}, newHTTPError(http.StatusNotFound, "%s %s is not here", r.Method, r.URL.Path)
	}).asPublic()))
	return mux
}

// serviceRoutes are about the server itself.
func (s *Server) serviceRoutes() []endpoint {
	healthy := func(*request) (response, error) { return jsonResponse(http.StatusOK, tinker.Health{Status: "ok"}) }
	return []endpoint{
		simpleEndpoint("GET /healthz", "", healthy).asPublic(),
		simpleEndpoint("GET /api/v1/healthz", "", healthy).asPublic(),
		simpleEndpoint("POST /api/v1/client/config", "client_config", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, s.options.Config)
		}),
		simpleEndpoint("POST /api/v1/client/dynamic_config", "client_dynamic_config", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, tinker.DynamicConfig{RefreshIntervalSec: 300})
		}),
		simpleEndpoint("POST /api/v1/auth/token", "auth_token", s.exchangeKey),
		simpleEndpoint("GET /api/v1/get_server_capabilities", "get_server_capabilities", func(r *request) (response, error) {
			return jsonResponse(http.StatusOK, r.state.Capabilities())
		}),
		simpleEndpoint("POST /api/v1/telemetry", "telemetry", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, tinker.TelemetryResponse{Status: "accepted"})
		}),
		simpleEndpoint("POST /api/v1/retrieve_future", "retrieve_future", s.retrieve),
	}
}

// sessionRoutes are about sessions and sampling.
func sessionRoutes() []endpoint {
	return []endpoint{
		jsonEndpoint("create_session", func(tinker.CreateSessionRequest) fault.Call { return fault.Call{} }, (*state.State).CreateSession),
		jsonEndpoint("session_heartbeat", func(r tinker.SessionHeartbeat) fault.Call {
			return fault.Call{Session: r.Session}
		}, (*state.State).Heartbeat),
		jsonEndpoint("create_sampling_session", func(r tinker.CreateSamplingSessionRequest) fault.Call {
			return fault.Call{Session: r.Session, Seq: r.Seq, Name: r.ModelPath}
		}, (*state.State).CreateSamplingSession),
		jsonEndpoint(state.OpSample, func(r tinker.SampleRequest) fault.Call {
			return fault.Call{Session: r.SamplingSession, Seq: valueOrZero(r.SeqID), Name: r.ModelPath}
		}, (*state.State).Sample),
		simpleEndpoint("GET /api/v1/samplers/{id}", "get_sampler", func(r *request) (response, error) {
			info, err := r.state.SamplerInfo(r.PathValue("id"))
			return jsonOrError(info, err)
		}),
		simpleEndpoint("GET /api/v1/sessions", "list_sessions", getSessions),
		simpleEndpoint("GET /api/v1/sessions/{id}", "get_session", func(r *request) (response, error) {
			info, err := r.state.Session(r.PathValue("id"))
			return jsonOrError(info, err)
		}),
		simpleEndpoint("PUT /api/v1/sessions/{id}/project", "set_project", func(r *request) (response, error) {
			var req struct {
				Project string `json:"project_id"`
			}
			if err := decode(r.body, &req); err != nil {
				return response{}, err
			}
			return response{}, r.state.SetProject(r.PathValue("id"), req.Project)
		}),
		simpleEndpoint("POST /api/v1/sessions/{id}/finish", "finish_session", func(r *request) (response, error) {
			return response{}, r.state.FinishSession(r.PathValue("id"))
		}),
	}
}

// trainingRoutes are the operations of models.
func trainingRoutes() []endpoint {
	return []endpoint{
		jsonEndpoint(tinker.TypeCreateModel, func(r tinker.CreateModelRequest) fault.Call {
			return fault.Call{Session: r.Session}
		}, (*state.State).CreateModel).adamOnly(),
		jsonEndpoint(tinker.TypeUnloadModel, modelCall, (*state.State).UnloadModel),
		jsonEndpoint(tinker.TypeGetInfo, modelCall, (*state.State).ModelInfo),
		{pattern: "POST /api/v1/forward_backward", op: state.OpForwardBackward, read: readData},
		{pattern: "POST /api/v1/forward", op: state.OpForward, read: readData},
		jsonEndpoint(tinker.TypeOptimStep, func(r tinker.OptimStepRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID}
		}, (*state.State).OptimStep).adamOnly(),
		jsonEndpoint(tinker.TypeSaveWeights, func(r tinker.SaveWeightsRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, (*state.State).SaveWeights),
		jsonEndpoint(tinker.TypeSaveSampler, func(r tinker.SaveSamplerRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, (*state.State).SaveSampler),
		jsonEndpoint(tinker.TypeLoadWeights, func(r tinker.LoadWeightsRequest) fault.Call {
			return fault.Call{Model: r.ModelID, Seq: r.SeqID, Name: r.Path}
		}, (*state.State).LoadState).adamOnly(),
	}
}

func modelCall(r tinker.ModelRequest) fault.Call { return fault.Call{Model: r.ModelID} }

// listingRoutes are about runs and checkpoints.
func (s *Server) listingRoutes() []endpoint {
	const below = " /api/v1/training_runs/{run}/checkpoints/{rest...}"
	return []endpoint{
		jsonEndpoint("weights_info", func(r tinker.WeightsInfoRequest) fault.Call {
			return fault.Call{Name: r.TinkerPath}
		}, func(l *state.State, _ context.Context, r tinker.WeightsInfoRequest) (tinker.WeightsInfo, error) {
			return l.WeightsInfo(r.TinkerPath)
		}),
		simpleEndpoint("GET /api/v1/training_runs", "list_training_runs", getRuns),
		simpleEndpoint("GET /api/v1/training_runs/{run}", "get_training_run", getRun),
		simpleEndpoint("GET /api/v1/training_runs/{run}/checkpoints", "list_run_checkpoints", getRunCheckpoints),
		simpleEndpoint("GET /api/v1/checkpoints", "list_checkpoints", getCheckpoints),
		{pattern: "GET" + below, op: "archive", read: s.readEdit},
		{pattern: "POST" + below, op: "publish", read: s.readEdit},
		{pattern: "PUT" + below, op: "ttl", read: s.readEdit},
		{pattern: "DELETE" + below, op: "delete_checkpoint", read: s.readEdit},
		simpleEndpoint("GET /archives/{token}", "", s.downloadArchive).asPublic(),
	}
}

// hubRoutes are those of a Hugging Face hub. GET stands for HEAD as well.
func (s *Server) hubRoutes() []endpoint {
	return []endpoint{simpleEndpoint("GET /{org}/{model}/resolve/{revision}/{file}", "", s.tokenizerFile).asPublic()}
}

// asPublic is the endpoint without the need for a key.
func (e endpoint) asPublic() endpoint {
	e.public = true
	return e
}

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

// readData reads the body of forward_backward or forward, in protobuf or, from clients before 0.25, in JSON.
func readData(r *request) (fault.Call, work, error) {
	req, err := decodeData(r)
	if err != nil {
		return fault.Call{}, nil, err
	}
	call := fault.Call{Op: state.OpOf(req), Model: req.ModelID, Seq: req.SeqID}
	return call, func() (response, error) {
		future, err := r.state.ForwardBackward(r.Context(), req)
		return jsonOrError(future, err)
	}, nil
}

func decodeData(r *request) (tinker.ForwardBackwardRequest, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == typeProtobuf {
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

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/limit"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// maxBody is the largest request body in bytes.
const maxBody = 64 << 20

// response is the response to a request. The zero value is 204.
type response struct {
	status      int
	contentType string
	header      http.Header
	body        []byte
}

// jsonResponse returns a response with the JSON form of a value.
func jsonResponse(status int, value any) (response, error) {
	body, err := json.Marshal(value)
	return response{status: status, contentType: tinker.ContentJSON, body: body}, err
}

// request is a request whose body was read, with the state that serves it.
type request struct {
	*http.Request
	state *state.State
	body  []byte
}

// action carries out a request that was decoded.
type action func() (response, error)

// endpoint is one row of the table of routes.
type endpoint struct {
	// pattern is the pattern for http.ServeMux.
	pattern string
	// op is the name of the endpoint in faults and counters. Faults do not apply to an endpoint without one.
	op string
	// public says that the endpoint needs no key.
	public bool
	// read decodes the request. It returns the call that faults match, and the action that carries out the request.
	read func(*request) (fault.Call, action, error)
}

// jsonEndpoint returns an endpoint that calls a method of one part of the state with a JSON body.
func jsonEndpoint[Part, Req, Resp any](op string, describe func(Req) fault.Call, part func(*state.State) Part,
	method func(Part, Req) (Resp, error)) endpoint {
	read := func(r *request) (fault.Call, action, error) {
		var req Req
		if err := decode(r.body, &req); err != nil {
			return fault.Call{}, nil, err
		}
		return describe(req), func() (response, error) {
			return jsonOrError(method(part(r.state), req))
		}, nil
	}
	return endpoint{pattern: "POST /api/v1/" + op, op: op, read: read}
}

// simpleEndpoint returns an endpoint whose requests faults can match by op alone.
func simpleEndpoint(pattern, op string, do func(*request) (response, error)) endpoint {
	return endpoint{pattern: pattern, op: op, read: func(r *request) (fault.Call, action, error) {
		return fault.Call{}, func() (response, error) { return do(r) }, nil
	}}
}

// decode decodes a JSON body. An empty body counts as an empty object.
func decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		issue := tinker.ValidationIssue{Loc: []string{"body"}, Msg: err.Error(), Type: "json_invalid"}
		return &httpError{status: http.StatusUnprocessableEntity, detail: []tinker.ValidationIssue{issue}}
	}
	return nil
}

// handler returns the handler of an endpoint.
func (s *Server) handler(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := s.serve(w, r, e)
		if err != nil {
			resp = errorResponse(err)
		}
		writeResponse(w, resp)
	})
}

// serve checks the key, reads the body and carries out the request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, e endpoint) (response, error) {
	s.counters.CountCall(cmp.Or(e.op, e.pattern))
	if !e.public && !s.authorized(r.Header.Get("X-API-Key")) {
		return response{}, newHTTPError(http.StatusUnauthorized, "invalid API key")
	}
	body, err := readBody(w, r)
	if err != nil {
		return response{}, err
	}
	current := s.state.Load()
	if current.IsClosed() {
		return response{}, state.ErrClosed
	}
	call, do, err := e.read(&request{Request: r, state: current, body: body})
	if err != nil {
		return response{}, err
	}
	return s.respond(r.Context(), e.op, call, do)
}

// respond carries out a request and returns its response, as far as faults allow.
func (s *Server) respond(ctx context.Context, op string, call fault.Call, do action) (response, error) {
	var faults fault.RequestFaults
	if op != "" {
		call.Op = cmp.Or(call.Op, op)
		faults = s.faults.ForRequest(call)
	}
	if faults.Delay > 0 {
		_ = wait.Sleep(ctx, faults.Delay)
	}
	if faults.DropRequest {
		panic(http.ErrAbortHandler)
	}
	if r := faults.Refusal; r != nil {
		return response{}, &httpError{status: r.Status, detail: r.Message, retryAfter: r.RetryAfter}
	}
	if retryAfter, refused := s.latency.Refuses(op); refused {
		return response{}, &httpError{status: http.StatusTooManyRequests, detail: "too many requests", retryAfter: retryAfter}
	}
	resp, err := s.limited(call.Op, do)
	if faults.DropAnswer {
		panic(http.ErrAbortHandler)
	}
	return resp, err
}

// limited carries out a request as far as the limits allow.
func (s *Server) limited(op string, do action) (response, error) {
	end, ok := s.limits.Admit(op)
	if !ok {
		return response{}, &httpError{status: http.StatusTooManyRequests, detail: "too many requests",
			retryAfter: s.limits.RetryAfter()}
	}
	resp, err := do()
	var submitted tinker.FutureResponse
	if op == limit.OpSample && err == nil && json.Unmarshal(resp.body, &submitted) == nil {
		end(submitted.RequestID, s.state.Load().Done(submitted.RequestID))
	} else {
		end("", nil)
	}
	return resp, err
}

// readBody reads the body and decompresses it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, newHTTPError(http.StatusRequestEntityTooLarge, "body is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, badRequest("reading the body: %s", err)
	}
	if body, err = tinker.Decompress(r.Header.Get("Content-Encoding"), body); err != nil {
		return nil, badRequest("%s", err)
	}
	return body, nil
}

// errorResponse returns the response for an error.
func errorResponse(err error) response {
	r := asHTTPError(err)
	resp, err := jsonResponse(r.status, tinker.ErrorResponse{Detail: r.detail})
	if err != nil {
		resp = response{status: http.StatusInternalServerError, contentType: "text/plain", body: []byte(err.Error())}
	}
	if r.retryAfter > 0 {
		seconds := int(math.Ceil(r.retryAfter.Seconds()))
		resp.header = http.Header{
			"Retry-After":    {strconv.Itoa(seconds)},
			"Retry-After-Ms": {strconv.FormatInt(r.retryAfter.Milliseconds(), 10)},
		}
	}
	return resp
}

// writeResponse writes a response with its length: clients attribute a 400 without a length to a proxy.
func writeResponse(w http.ResponseWriter, r response) {
	maps.Copy(w.Header(), r.header)
	if r.status == 0 {
		r.status = http.StatusNoContent
	}
	if r.contentType != "" {
		w.Header().Set("Content-Type", r.contentType)
	}
	if r.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // a client that disconnected will retry
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// maxBody bounds the bodies that are read.
const maxBody = 64 << 20

// response is what a request is answered with. The zero value is 204.
type response struct {
	status      int
	contentType string
	header      http.Header
	body        []byte
}

const (
	typeJSON     = "application/json"
	typeProtobuf = "application/x-protobuf"
)

// jsonResponse makes a response of a value.
func jsonResponse(status int, value any) (response, error) {
	body, err := json.Marshal(value)
	return response{status: status, contentType: typeJSON, body: body}, err
}

// request is a request whose body was read, with the life that is to answer it.
type request struct {
	*http.Request
	state *state.State
	body []byte
}

// work does the work of a request.
type work func() (response, error)

// endpoint is one row of the table of routes.
type endpoint struct {
	// pattern is that of http.ServeMux.
	pattern string
	// op is what faults and counts call it; without one it is not subject to faults.
	op string
	// public needs no key.
	public bool
	// read decodes the request and returns what faults look at and what answers it.
	read func(*request) (fault.Call, work, error)
}

// jsonEndpoint is an endpoint that takes and gives JSON.
func jsonEndpoint[Req, Rep any](op string, describe func(Req) fault.Call, do func(*state.State, context.Context, Req) (Rep, error)) endpoint {
	read := func(r *request) (fault.Call, work, error) {
		var req Req
		if err := decode(r.body, &req); err != nil {
			return fault.Call{}, nil, err
		}
		return describe(req), func() (response, error) {
			rep, err := do(r.state, r.Context(), req)
			if err != nil {
				return response{}, err
			}
			return jsonResponse(http.StatusOK, rep)
		}, nil
	}
	return endpoint{pattern: "POST /api/v1/" + op, op: op, read: read}
}

// simpleEndpoint is an endpoint without a body that matters.
func simpleEndpoint(pattern, op string, do func(*request) (response, error)) endpoint {
	return endpoint{pattern: pattern, op: op, read: func(r *request) (fault.Call, work, error) {
		return fault.Call{}, func() (response, error) { return do(r) }, nil
	}}
}

// decode reads a JSON body. An empty one is an empty object.
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

// handler is the one place where requests meet faults, and errors become answers.
func (s *Server) handler(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.counters.CountCall(e.name())
		if !e.public && !s.authorized(r.Header.Get("X-API-Key")) {
			write401(w)
			return
		}
		body, err := readBody(w, r)
		if err != nil {
			writeResponse(w, errorResponse(err))
			return
		}
		now := s.state.Load()
		if isClosed(now) {
			writeResponse(w, errorResponse(state.ErrEnded))
			return
		}
		call, work, err := e.read(&request{Request: r, state: now, body: body})
		if err != nil {
			writeResponse(w, errorResponse(err))
			return
		}
		writeResponse(w, s.respond(r.Context(), e.op, call, work))
	})
}

func isClosed(l *state.State) bool {
	select {
	case <-l.Ended():
		return true
	default:
		return false
	}
}

// name is what the endpoint is counted under.
func (e endpoint) name() string {
	if e.op != "" {
		return e.op
	}
	return e.pattern
}

// respond does the work of a request unless a fault strikes the exchange.
func (s *Server) respond(ctx context.Context, op string, call fault.Call, work work) response {
	var struck fault.RequestFaults
	if op != "" {
		call.Op = cmp.Or(call.Op, op)
		struck = s.faults.ForRequest(call)
	}
	if struck.Delay > 0 {
		sleep(ctx, struck.Delay)
	}
	if struck.DropRequest {
		panic(http.ErrAbortHandler)
	}
	if r := struck.Refusal; r != nil {
		return errorResponse(&httpError{status: r.Status, detail: r.Message, retryAfter: r.RetryAfter})
	}
	answer, err := work()
	if struck.DropAnswer {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		return errorResponse(err)
	}
	return answer
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// readBody reads the body and undoes its compression.
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

// errorResponse is the answer for an error.
func errorResponse(err error) response {
	r := asHTTPError(err)
	answer, err := jsonResponse(r.status, tinker.ErrorResponse{Detail: r.detail})
	if err != nil {
		answer = response{status: http.StatusInternalServerError, contentType: "text/plain", body: []byte(err.Error())}
	}
	if r.retryAfter > 0 {
		seconds := int(math.Ceil(r.retryAfter.Seconds()))
		answer.header = http.Header{
			"Retry-After":    {strconv.Itoa(seconds)},
			"Retry-After-Ms": {strconv.FormatInt(r.retryAfter.Milliseconds(), 10)},
		}
	}
	return answer
}

func write401(w http.ResponseWriter) {
	writeResponse(w, errorResponse(newHTTPError(http.StatusUnauthorized, "invalid API key")))
}

// writeResponse writes a whole response with its length: clients take a 400 without one for a proxy's.
func writeResponse(w http.ResponseWriter, r response) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
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
	_, _ = w.Write(r.body) // a client that is gone asks again
}

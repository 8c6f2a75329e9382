// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// refusal is an answer that the broker makes itself.
type refusal struct {
	status int
	code   problem.Code
	detail string
	// forwarded says that the server may have executed the request.
	forwarded bool
	// retryAfter is in seconds.
	retryAfter int
	// closing says that the connection closes with the answer.
	closing bool
}

// Error returns the message for people.
func (r *refusal) Error() string { return r.detail }

func refuse(status int, code problem.Code, format string, values ...any) *refusal {
	return &refusal{status: status, code: code, detail: fmt.Sprintf(format, values...)}
}

// after sets the Retry-After of the refusal.
func (r *refusal) after(seconds int) *refusal {
	r.retryAfter = seconds
	return r
}

// notFound answers for an object that the run may not use as for one that does not exist.
func notFound(of kind, id string) *refusal {
	return refuse(http.StatusNotFound, problem.ObjectNotOwned, "%s %s not found among the objects of this run", of, id)
}

// standby answers for a broker that does not serve, or no longer serves. The connection closes with the answer, so
// that the client's next connection leads to the broker that serves.
func standby(endpoint, why string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, code: problem.BrokerDraining, retryAfter: soonSeconds,
		closing: true, detail: "this broker of TinkerEndpoint " + endpoint + " does not serve: " + why}
}

// Standby returns a handler that refuses every request while another broker serves.
func Standby(endpoint string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		standby(endpoint, "another broker does").send(w)
	})
}

func invalid(err error) *refusal {
	return refuse(http.StatusUnprocessableEntity, problem.RequestInvalid, "%s", err)
}

// refusalBody is the body of a refusal.
type refusalBody struct {
	Detail    string       `json:"detail"`
	Code      problem.Code `json:"code"`
	Forwarded bool         `json:"forwarded"`
}

// send answers a request.
func (r *refusal) send(w http.ResponseWriter) {
	encoded, err := json.Marshal(refusalBody{r.detail, r.code, r.forwarded})
	if err != nil {
		panic(err) // texts can be encoded
	}
	w.Header().Set(tinker.HeaderBrokerCode, string(r.code))
	w.Header().Set(tinker.HeaderBrokerForwarded, strconv.FormatBool(r.forwarded))
	if r.closing {
		w.Header().Set("Connection", "close")
	}
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(r.retryAfter))
	}
	sendJSON(w, r.status, encoded)
}

// sendJSON sends a body with its length: clients ascribe a 400 without a length to a proxy.
func sendJSON(w http.ResponseWriter, status int, encoded []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	_, _ = w.Write(encoded) // a client that disconnected will ask again
}

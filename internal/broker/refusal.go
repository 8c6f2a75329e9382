// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// The headers of an answer that the broker makes itself.
const (
	// HeaderCode has the code of the answer.
	HeaderCode = "X-Tinker-Broker-Code"
	// HeaderForwarded is true if the server may have executed the request, and otherwise false.
	HeaderForwarded = "X-Tinker-Broker-Forwarded"
)

// The codes of answers that package problem has none for.
const (
	// CodeTokenRefused is the code for a token of no run that the broker knows.
	CodeTokenRefused problem.Code = "TokenRefused"
	// CodeNotFound is the code for an object that the run did not make, whether it exists or not.
	CodeNotFound problem.Code = "NotFound"
	// CodeRouteRefused is the code for a route that the broker does not pass.
	CodeRouteRefused problem.Code = "RouteRefused"
	// CodeRequestInvalid is the code for a request that cannot be read without doubt.
	CodeRequestInvalid problem.Code = "RequestInvalid"
	// CodeModelRefused is the code for a base model that the endpoint does not permit.
	CodeModelRefused problem.Code = "ModelRefused"
	// CodeDraining is the code of a broker that ends.
	CodeDraining problem.Code = "BrokerDraining"
	// CodeRecordsBlocked is the code of a broker that cannot record the owner of a new object.
	CodeRecordsBlocked problem.Code = "RecordsBlocked"
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
}

// Error returns the message for people.
func (r *refusal) Error() string { return r.detail }

func refuse(status int, code problem.Code, format string, values ...any) *refusal {
	return &refusal{status: status, code: code, detail: fmt.Sprintf(format, values...)}
}

// notFound answers for an object that the run may not use as for one that does not exist.
func notFound(of kind, id string) *refusal {
	return refuse(http.StatusNotFound, CodeNotFound, "%s %s not found among the objects of this run", of, id)
}

func invalid(err error) *refusal {
	return refuse(http.StatusUnprocessableEntity, CodeRequestInvalid, "%s", err)
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
	w.Header().Set(HeaderCode, string(r.code))
	w.Header().Set(HeaderForwarded, strconv.FormatBool(r.forwarded))
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

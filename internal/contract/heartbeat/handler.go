// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// maxRequestBytes and maxReplyBytes bound requests and replies. A learner bounds its records to a part of the latter:
// contract.MaxRecordsBytes.
const (
	maxRequestBytes = 16 << 10
	maxReplyBytes   = 512 << 10
)

// HasBearer reports whether a request has a bearer token that is authorized.
func HasBearer(r *http.Request, authorized func(token string) bool) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && authorized(token)
}

// Handler returns the HTTP handler of the learner of one run. authorized reports whether a bearer token is the
// manager's. observe is called for each request of this run and must not block: it notes the desired state and
// returns the learner's reply. observe also receives attempts below and above the learner's own, and decides how to
// react to them. Numbers that JSON cannot carry are left out of the reply, which then says Diverged.
func Handler(runUID string, authorized func(token string) bool,
	observe func(contract.HeartbeatRequest) contract.HeartbeatReply) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+contract.HeartbeatPath, func(w http.ResponseWriter, r *http.Request) {
		if !HasBearer(r, authorized) {
			http.Error(w, "the manager's token is required", http.StatusUnauthorized)
			return
		}
		var request contract.HeartbeatRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, maxRequestBytes)).Decode(&request); err != nil {
			http.Error(w, "the body is not a heartbeat", http.StatusBadRequest)
			return
		}
		if request.RunUID != runUID {
			http.Error(w, "this learner belongs to another run", http.StatusMisdirectedRequest)
			return
		}
		reply := observe(request)
		reply.Progress = reply.Progress.Finite()
		data, err := json.Marshal(reply)
		if err != nil {
			http.Error(w, "the reply cannot be encoded", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// The error means that the client closed the connection, so there is nobody to report it to.
		_, _ = w.Write(data)
	})
	return mux
}

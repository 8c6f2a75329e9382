// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"testing"
)

// FuzzPollResponses checks that every response to a poll is a result, a failure or a state.
func FuzzPollResponses(f *testing.F) {
	for _, seed := range []string{tryAgain, paused, saved, `{"error":null}`,
		`{"status":"complete_metadata","response_payload_size":-1}`, "null", "[]", ""} {
		f.Add(200, seed, true)
		f.Add(408, seed, false)
	}
	f.Fuzz(func(t *testing.T, status int, body string, metadataOnly bool) {
		got, err := readState(pending{op: "op"}, response{status: status, header: http.Header{}, body: []byte(body)},
			metadataOnly)
		if err != nil && (got != pollState{} || CategoryFrom(err) == "") {
			t.Errorf("%+v with %v", got, err)
		}
		if got.done && got.size != 0 {
			t.Errorf("both done and still to be fetched: %+v", got)
		}
		message([]byte(body))
	})
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// BenchmarkSubmit sends samples of 1,000 tokens to a server that answers at once, directly and by a broker, which
// stores the owner of each result before it passes the reply.
func BenchmarkSubmit(b *testing.B) {
	upstream := httptest.NewServer(&script{answers: map[string]http.HandlerFunc{
		"asample": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"request_id":"`+r.Header.Get("X-Tinker-Number")+`"}`)
		},
		"create_sampling_session": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"sampling_session_id":"sampler"}`)
		},
	}})
	defer upstream.Close()
	passing, err := broker.Open(broker.Config{BaseURL: upstream.URL, APIKey: apiKey, TokenKey: tokenKey, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer passing.Close()
	passing.SetRuns([]broker.Run{first})
	front := httptest.NewServer(passing)
	defer front.Close()
	body := []byte(`{"sampling_session_id":"sampler","num_samples":1,"seq_id":1,"prompt":{"chunks":[{"type":"encoded_text",` +
		`"tokens":[` + strings.Repeat("12345,", 999) + `1]}]},"sampling_params":{"max_tokens":2}}`)
	send := func(b *testing.B, base, path string, body []byte, number string) {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/api/v1/"+path, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set(tinker.HeaderAPIKey, contract.RunToken(tokenKey, first.UID))
		r.Header.Set("X-Tinker-Number", number)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("status %d, %v", resp.StatusCode, err)
		}
	}
	send(b, front.URL, "create_sampling_session", []byte(`{}`), "")
	for name, base := range map[string]string{"direct": upstream.URL, "broker": front.URL} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				send(b, base, "asample", body, name+strconv.Itoa(n))
			}
		})
	}
}

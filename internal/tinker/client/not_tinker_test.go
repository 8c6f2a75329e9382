// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestEndpointsThatAreNotTinkerAPI connects to servers of other kinds: the client stops at once and reports their
// answers.
func TestEndpointsThatAreNotTinkerAPI(t *testing.T) {
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	plain := func(url string) string { return url }
	cases := map[string]struct {
		handler  http.Handler
		tls      bool
		url      func(string) string
		evidence string
	}{
		"nothing at the path": {
			answer(404, "application/json", `{"detail":"Not Found"}`), false, func(url string) string { return url + "/v1" },
			"POST /v1/api/v1/client/config was answered with 404: Not Found",
		},
		"another method": {answer(405, "text/plain", "Method Not Allowed"), false, plain,
			"POST /api/v1/client/config was answered with 405: Method Not Allowed"},
		"a page": {answer(200, "text/html", "<!doctype html>\n<title>Grafana</title>"), false, plain,
			"POST /api/v1/client/config was answered with 200: <!doctype html>"},
		"a page of errors": {answer(400, "text/html", "<html>The plain HTTP request was sent to HTTPS port</html>"), false,
			plain, "POST /api/v1/client/config was answered with 400: <html>The plain HTTP request was sent to " +
				"HTTPS port</html>"},
		"a private authority": {
			answer(200, "application/json", "{}"), true, plain,
			"POST /api/v1/client/config got no answer: tls: failed to verify certificate: x509: certificate signed by unknown " +
				"authority",
		},
		"a server without TLS": {
			answer(200, "application/json", "{}"), false,
			func(url string) string { return strings.Replace(url, "http:", "https:", 1) },
			"POST /api/v1/client/config got no answer: http: server gave HTTP response to HTTPS client",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(tc.handler)
			server.Config.ErrorLog = log.New(new(strings.Builder), "", 0)
			if tc.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			c, err := New(Config{BaseURL: tc.url(server.URL), APIKey: "tml-key"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = c.Capabilities(ctx)
			if got := CategoryFrom(err); got != tinker.CategoryNotTinker {
				t.Errorf("Capabilities = %v, of category %q", err, got)
			}
			if got := EvidenceOf(err); got != tc.evidence {
				t.Errorf("evidence is %q, want %q", got, tc.evidence)
			}
		})
	}
}

// TestMissingCallOfATinkerAPI checks that a 404 is a failure of its call alone once the client is connected.
func TestMissingCallOfATinkerAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "client/config") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	c, err := New(Config{BaseURL: server.URL, APIKey: "tml-key"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Capabilities(t.Context()); CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("Capabilities = %v", err)
	}
}

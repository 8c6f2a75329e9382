// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRedirects checks which redirects of a server are followed. A request that is redirected arrives with its method,
// body and headers. For other redirects there is one request, and the error names the field to change.
func TestRedirects(t *testing.T) {
	cases := map[string]struct {
		status int
		// from and to are the addresses of the server that redirects and of the other one.
		from, to string
		want     string
	}{
		"308 to another path":           {status: 308, from: "http://a.test", to: "http://a.test/v2"},
		"307 to another path":           {status: 307, from: "http://a.test", to: "http://a.test/v2"},
		"308 to https of the same host": {status: 308, from: "http://a.test", to: "https://a.test"},
		"308 to another host": {status: 308, from: "http://a.test", to: "http://b.test",
			want: "http://b.test"},
		"308 to another port": {status: 308, from: "http://a.test", to: "http://a.test:8080",
			want: "http://a.test:8080"},
		"308 from https to http": {status: 308, from: "https://a.test", to: "http://a.test",
			want: "http://a.test"},
		"301, by which a request loses its body": {status: 301, from: "http://a.test", to: "http://a.test/v2",
			want: "http://a.test/v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var first, other atomic.Int64
			redirect := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if path, ok := strings.CutPrefix(r.URL.Path, "/v2"); ok && strings.HasPrefix(tc.to, tc.from) {
					answerRedirected(t, &other, path).ServeHTTP(w, r)
					return
				}
				first.Add(1)
				http.Redirect(w, r, tc.to+r.URL.Path, tc.status)
			})
			target := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answerRedirected(t, &other, r.URL.Path).ServeHTTP(w, r)
			})
			b := connectAddresses(t, map[string]http.Handler{tc.from: redirect, tc.to: target}, Options{
				BaseURL: tc.from, APIKey: "key", Secrets: []Secret{{Name: "JUDGE", Value: "v"}},
			})
			id, err := b.createSession(t.Context(), true)
			if tc.want == "" {
				if err != nil || id != "s" || other.Load() != 1 {
					t.Errorf("createSession = %q, %v after %d requests to the new address", id, err, other.Load())
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want+"/create_session") || !strings.Contains(err.Error(),
				"ors.url") {
				t.Errorf("createSession: %v, want an error that names ors.url and %s", err, tc.want)
			}
			if first.Load() != 1 || other.Load() != 0 {
				t.Errorf("%d requests reached the server, and %d the address to which it redirects; want one and none",
					first.Load(), other.Load())
			}
		})
	}
}

// answerRedirected answers a request that was redirected to a path, and checks that it is whole.
func answerRedirected(t *testing.T, count *atomic.Int64, path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		text, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || path != "/create_session" || string(text) != "{}" ||
			r.Header.Get("X-API-Key") != "key" || r.Header.Get("X-Secrets") == "" ||
			r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("%s %s arrived with body %q and headers %v: %v", r.Method, path, text, r.Header, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"sid":"s"}`))
	})
}

// connectAddresses serves a handler at each address and returns a backend that finds them.
func connectAddresses(t *testing.T, handlers map[string]http.Handler, options Options) *Backend {
	t.Helper()
	listeners := map[string]string{}
	for address, handler := range handlers {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Path != "" {
			continue // This is a path of the server that redirects.
		}
		server := httptest.NewUnstartedServer(handler)
		port := cmp.Or(parsed.Port(), map[string]string{"http": "80", "https": "443"}[parsed.Scheme])
		if parsed.Scheme == "https" {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		listeners[net.JoinHostPort(parsed.Hostname(), port)] = server.Listener.Addr().String()
	}
	options.HTTP = dialing(t, listeners)
	b, err := New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.pace = pace{ping: time.Hour, idle: 10 * time.Second, retry: fastRetry}
	return b
}

// dialing returns a client that finds the given addresses at the given listeners, and no others.
func dialing(t *testing.T, listeners map[string]string) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			listener, ok := listeners[address]
			if !ok {
				return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
			}
			return new(net.Dialer).DialContext(ctx, network, listener)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

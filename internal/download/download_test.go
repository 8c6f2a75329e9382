// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/stall"
)

var content = bytes.Repeat([]byte("0123456789abcdef"), 20_000)

// server serves content with the faults that its fields describe.
type server struct {
	// breakAt lists how many bytes each answer sends before its connection breaks.
	breakAt []int
	// refuse lists statuses that are answered first.
	refuse []int
	// noRanges answers requests for a part with the whole file, and changed with another file.
	noRanges, changed bool
	requests          []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests = append(s.requests, r.Header.Get("Range")+"|"+r.Header.Get("Authorization"))
	if len(s.refuse) > 0 {
		status := s.refuse[0]
		s.refuse = s.refuse[1:]
		w.Header().Set("Retry-After", "0")
		http.Error(w, "not now\nsecond line", status)
		return
	}
	file := content
	if s.changed && len(s.requests) > 1 {
		file = content[:len(content)-5]
	}
	if len(s.breakAt) > 0 {
		at := s.breakAt[0]
		s.breakAt = s.breakAt[1:]
		w = &breaking{ResponseWriter: w, left: at}
	}
	if s.noRanges {
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "file.bin", time.Time{}, bytes.NewReader(file))
}

// breaking breaks the connection after some bytes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		n, err := b.ResponseWriter.Write(p[:b.left])
		if err != nil {
			return n, err
		}
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func read(t *testing.T, url string) ([]byte, error) {
	t.Helper()
	c := &Client{}
	body, err := c.Open(t.Context(), Source{URL: url, Token: "token"})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		server   server
		requests int
		problem  string
	}{
		"a server that answers":                {requests: 1},
		"a connection that breaks in the file": {server: server{breakAt: []int{100_000, 50_000}}, requests: 3},
		"one that breaks without ranges":       {server: server{breakAt: []int{100_000}, noRanges: true}, requests: 2},
		"429 and 503 that ask for a pause":     {server: server{refuse: []int{429, 503, 500}}, requests: 4},
		"a file that changes": {server: server{breakAt: []int{100_000}, changed: true}, requests: 2,
			problem: "the file changed during the download"},
		"a file that changes and has no ranges": {server: server{breakAt: []int{100_000}, changed: true, noRanges: true},
			requests: 2, problem: "the file changed"},
		"a refusal": {server: server{refuse: []int{403}}, requests: 1,
			problem: "answers 403 Forbidden: not now"},
		"a refusal in the middle": {server: server{breakAt: []int{0}}, requests: 2},
		"a server that answers 500 all the time": {server: server{refuse: []int{500, 500, 500, 500, 500, 500, 500, 500, 500,
			500}}, requests: maxTries, problem: "answers 500"},
		"a file that breaks more often than that": {server: server{breakAt: []int{9000, 9000, 9000, 9000, 9000, 9000, 9000,
			9000, 9000, 9000, 9000}}, requests: 12},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(&tc.server)
			s.Config.ErrorLog = nil
			s.Start()
			defer s.Close()
			got, err := read(t, s.URL+"/file.bin")
			if tc.problem == "" && (err != nil || !bytes.Equal(got, content)) {
				t.Errorf("read %d bytes of %d, %v", len(got), len(content), err)
			}
			if tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("err = %v, want %s", err, tc.problem)
			}
			if len(tc.server.requests) != tc.requests {
				t.Errorf("%d requests: %q, want %d", len(tc.server.requests), tc.server.requests, tc.requests)
			}
			if tc.server.requests[0] != "|Bearer token" {
				t.Errorf("the first request has %q", tc.server.requests[0])
			}
		})
	}
}

// TestRedirect checks that the token stays with the host that it is for.
func TestRedirect(t *testing.T) {
	store := &server{breakAt: []int{100_000}}
	files := httptest.NewServer(store)
	defer files.Close()
	// Another name of the same machine is another host for the client.
	elsewhere := strings.Replace(files.URL, "127.0.0.1", "localhost", 1)
	hub := httptest.NewServer(http.RedirectHandler(elsewhere, http.StatusFound))
	defer hub.Close()
	got, err := read(t, hub.URL)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	if want := "bytes="; len(store.requests) != 2 || !strings.HasPrefix(store.requests[1], want) ||
		!strings.HasSuffix(store.requests[1], "-|") {
		t.Errorf("the host of the file got %q, want a second request with %s and no token", store.requests, want)
	}
}

func TestPage(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "next")
		_, _ = io.WriteString(w, "page")
	}))
	defer s.Close()
	data, header, err := (&Client{}).Page(t.Context(), s.URL, "")
	if err != nil || string(data) != "page" || header.Get("Link") != "next" {
		t.Errorf("Page = %q, %v, %v", data, header, err)
	}
}

// roundTrip answers requests instead of a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPausesAndPatience(t *testing.T) {
	answer := func(status int, header http.Header) *http.Response {
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("")), ContentLength: 0}
	}
	hangs := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	cases := map[string]struct {
		first    roundTrip
		min, max time.Duration
	}{
		"a server that asks for 20 seconds": {func(*http.Request) (*http.Response, error) {
			return answer(429, http.Header{"Retry-After": {"20"}}), nil
		}, 20 * time.Second, 20 * time.Second},
		"a server that asks for an hour": {func(*http.Request) (*http.Response, error) {
			return answer(503, http.Header{"Retry-After": {"3600"}}), nil
		}, longestAskedPause, longestAskedPause},
		"a server that is unreachable": {func(*http.Request) (*http.Response, error) {
			return nil, errors.New("connection refused")
		}, pauses.First / 2, pauses.First},
		"a server that does not answer": {hangs, stall.Limit + pauses.First/2, stall.Limit + pauses.First},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				c := &Client{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if requests++; requests == 1 {
						return tc.first(r)
					}
					return answer(200, http.Header{}), nil
				})}}
				began := time.Now()
				if _, _, err := c.Page(t.Context(), "http://hub.test/", ""); err != nil {
					t.Errorf("Page: %v", err)
				}
				if took := time.Since(began); took < tc.min || took > tc.max {
					t.Errorf("the second request came after %v, want %v to %v", took, tc.min, tc.max)
				}
			})
		})
	}
}

func TestCanceled(t *testing.T) {
	s := httptest.NewServer(&server{refuse: []int{503}})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Client{}).Open(ctx, Source{URL: s.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v", err)
	}
}

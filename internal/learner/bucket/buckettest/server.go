// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package buckettest starts servers of stores for tests: one that is compatible with S3, and one that speaks a part of
// Google Cloud Storage's interface.
package buckettest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Name is the name of the only bucket of a server.
const Name = "runs"

// Server has one bucket, in memory.
type Server struct {
	address string
}

// Start runs a server until the test ends. If change is not nil, it wraps the handler of requests. Keys are not needed.
func Start(t testing.TB, change func(http.Handler) http.Handler) *Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(Name); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	if change != nil {
		handler = change(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Server{address: server.URL}
}

// URL returns the URL of a prefix in the bucket, as in artifacts.url.
func (s *Server) URL(prefix string) string {
	query := url.Values{"endpoint": {s.address}, "region": {"us-east-1"}, "use_path_style": {"true"},
		"anonymous": {"true"}}
	return "s3://" + Name + "/" + prefix + "?" + query.Encode()
}

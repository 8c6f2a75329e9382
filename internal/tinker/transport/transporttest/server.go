// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package transporttest has servers for tests of connections that fail.
package transporttest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// PrivateServer starts a server whose certificate is signed by an authority that no client trusts.
func PrivateServer(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

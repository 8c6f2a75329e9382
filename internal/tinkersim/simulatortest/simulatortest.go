// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulatortest serves tinkersim to tests.
package simulatortest

import (
	"net/http/httptest"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// TB is the part of a test that Serve needs. The tests of package testing and GinkgoT() have it.
type TB interface {
	Helper()
	Fatal(values ...any)
	TempDir() string
	Cleanup(end func())
}

// Serve serves a simulator on a loopback port until the test ends, and returns it with its URL. It stores its state in
// a folder of the test unless the options name one.
func Serve(t TB, options tinkersim.Options) (simulator *tinkersim.Server, url string) {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	simulator, err := tinkersim.New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(simulator)
	t.Cleanup(func() {
		simulator.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return simulator, server.URL
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestIsDialError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		panic(http.ErrAbortHandler)
	}))
	get := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := get(); err == nil || IsDialError(err) {
		t.Errorf("a request that was sent failed with %v, which counts as one that was not", err)
	}
	server.Close()
	if err := get(); !IsDialError(err) {
		t.Errorf("a request to a closed port failed with %v, which counts as one that was sent", err)
	}
}

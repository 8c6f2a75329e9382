// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive reads the archives of checkpoints, for tests that compare weights.
package archive

import (
	"io"
	"net/http"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Open returns the archive of the checkpoint at the path as a tar file, which the caller closes.
func Open(t testing.TB, baseURL, key, path string) io.ReadCloser {
	t.Helper()
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	target := baseURL + "/api/v1/training_runs/" + parsed.Run + "/checkpoints/" + parsed.CheckpointID() + "/archive"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(tinker.HeaderAPIKey, key)
	response, err := http.DefaultClient.Do(request) // it follows the redirect to the file
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		t.Fatalf("opening the archive of %s: %s", path, response.Status)
	}
	return response.Body
}

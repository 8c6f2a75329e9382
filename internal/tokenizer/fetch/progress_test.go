// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowHub answers with a file that takes six seconds.
type slowHub struct{ read bool }

func (h *slowHub) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: 3, Body: io.NopCloser(h)}, nil
}

func (h *slowHub) Read(p []byte) (int, error) {
	if h.read {
		return 0, io.EOF
	}
	h.read = true
	time.Sleep(6 * time.Second)
	return copy(p, "abc"), nil
}

func TestProgressIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := Fetcher{Client: &http.Client{Transport: &slowHub{}}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		data, _, err := f.File(t.Context(), Source{Repository: "a/b"})
		if err != nil || string(data) != "abc" {
			t.Fatalf("File = %q, %v", data, err)
		}
		if got := log.String(); strings.Count(got, "msg=downloading") != 1 || !strings.Contains(got, "a/b") {
			t.Errorf("the log is %s, want one line of progress that names the source", got)
		}
	})
}

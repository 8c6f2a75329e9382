// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

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

// slow yields a byte with each read, after six seconds.
type slow struct{ left int }

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	time.Sleep(6 * time.Second)
	return 1, nil
}

func TestProgressIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &Client{Logger: slog.New(slog.NewTextHandler(&log, nil)),
			HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: 2,
					Body: io.NopCloser(&slow{2})}, nil
			})}}
		if _, _, err := c.Page(t.Context(), "http://hub.test/data/rows.jsonl?signature=secret", ""); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); strings.Count(got, "msg=downloading file=rows.jsonl read=") != 2 || strings.Contains(got,
			"secret") {
			t.Errorf("the log is %s, want two lines of progress without the query", got)
		}
	})
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSecretsStayWithTheirHost follows redirects to hosts that net/http would send the token or the signed URL to.
func TestSecretsStayWithTheirHost(t *testing.T) {
	cases := map[string]struct {
		first, second string
		keeps         bool
	}{
		"the same host":                 {"https://hub.test/a?signature=s", "https://hub.test/b", true},
		"a host below it":               {"https://hub.test/a?signature=s", "https://cdn.hub.test/b", false},
		"another host":                  {"https://hub.test/a?signature=s", "https://files.test/b", false},
		"another port":                  {"https://hub.test/a?signature=s", "https://hub.test:444/b", false},
		"the same host without its TLS": {"https://hub.test/a?signature=s", "http://hub.test/b", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			c := &Client{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ContentLength: 1,
					Body: io.NopCloser(strings.NewReader("x"))}
				if r.URL.String() == tc.first {
					answer.StatusCode = http.StatusFound
					answer.Header.Set("Location", tc.second)
				}
				got = r.Header
				return answer, nil
			})}}
			if _, _, err := c.Page(t.Context(), tc.first, "token"); err != nil {
				t.Fatal(err)
			}
			if keeps := got.Get("Authorization") != ""; keeps != tc.keeps {
				t.Errorf("the second request has a token: %v, want %v", keeps, tc.keeps)
			}
			if referer := got.Get("Referer"); !tc.keeps && referer != "" {
				t.Errorf("the second request names %s", referer)
			}
		})
	}
}

func TestValidator(t *testing.T) {
	const changed, long, short = "Sun, 22 Nov 2026 12:00:00 GMT", "Sun, 22 Nov 2026 12:01:00 GMT",
		"Sun, 22 Nov 2026 12:00:59 GMT"
	for name, tc := range map[string]struct{ tag, changed, date, want string }{
		"none":                           {},
		"a strong ETag":                  {tag: `"v1"`, changed: changed, date: long, want: `"v1"`},
		"a weak ETag":                    {tag: `W/"v1"`, changed: changed, date: long},
		"a file that changed long ago":   {changed: changed, date: long, want: changed},
		"a file that may change again":   {changed: changed, date: short},
		"a change of an unknown clock":   {changed: changed},
		"a change that is not a date":    {changed: "yesterday", date: long},
		"a change after the answer came": {changed: long, date: changed},
	} {
		header := http.Header{"Etag": {tc.tag}, "Last-Modified": {tc.changed}, "Date": {tc.date}}
		if got := validator(header); got != tc.want {
			t.Errorf("%s: validator = %q, want %q", name, got, tc.want)
		}
	}
}

// TestFileOfTheSameSizeThatChanges breaks a download and then serves other bytes. A stream cannot take back the bytes
// that were read; a file on a disk begins anew.
func TestFileOfTheSameSizeThatChanges(t *testing.T) {
	for name, validator := range map[string]func(version int) (field, value string){
		"by ETag": func(version int) (string, string) { return "ETag", fmt.Sprintf("%q", fmt.Sprint(version)) },
		"by time": func(version int) (string, string) {
			return "Last-Modified", time.Date(2026, 1, version, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				version := 1 + (requests-1)%2
				field, value := validator(version)
				w.Header().Set(field, value)
				if version == 1 {
					w = &breaking{ResponseWriter: w, left: 100_000}
				}
				changed, _ := http.ParseTime(w.Header().Get("Last-Modified"))
				http.ServeContent(w, r, "", changed, bytes.NewReader(bytes.Repeat([]byte{byte('0' + version)}, len(content))))
			}))
			defer served.Close()
			if _, err := read(t, served.URL); err == nil || !strings.Contains(err.Error(), errChanged.Error()) {
				t.Errorf("read: %v, want %v", err, errChanged)
			}
			if _, err := (&Client{}).File(t.Context(), Source{URL: served.URL}, filepath.Join(t.TempDir(), "a")); err != nil {
				t.Errorf("File: %v", err)
			}
			if diff := cmp.Diff(4, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSizeIsBounded(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a size that is announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2000000")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"a size that shows": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2_000_000)) },
	} {
		t.Run(name, func(t *testing.T) {
			served := httptest.NewServer(answer)
			defer served.Close()
			c, source := &Client{Tries: 1}, Source{URL: served.URL, MostBytes: 1 << 20}
			if _, err := c.File(t.Context(), source, filepath.Join(t.TempDir(), "a")); err == nil ||
				!strings.Contains(err.Error(), "over 1 MiB") {
				t.Errorf("File: %v, want an error that says its bound", err)
			}
		})
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/stall"
)

// versions serves a file. Its first responses are failures, which cut the body or refuse the request.
type versions struct {
	content  []byte
	tag      string
	header   map[string]string
	failures []func(http.ResponseWriter)
	ranges   []string
}

// ServeHTTP implements http.Handler.
func (s *versions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	w.Header().Set("Retry-After", "0")
	for name, value := range s.header {
		w.Header().Set(name, value)
	}
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if len(s.failures) > 0 {
		fail := s.failures[0]
		s.failures = s.failures[1:]
		fail(w)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
}

// cut sends n bytes of the file and closes the connection.
func (s *versions) cut(n int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
		_, _ = w.Write(s.content[:n])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func refuse(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(status) }
}

// fetch downloads the file of the server.
func (s *versions) fetch(t *testing.T, name string) (string, error) {
	t.Helper()
	listener := httptest.NewServer(s)
	defer listener.Close()
	c := Client{Tries: tries, Report: func(message string) { t.Log(message) }}
	return c.File(t.Context(), Source{Locate: func(context.Context) (string, error) {
		return listener.URL + "/signed?secret", nil
	}}, name)
}

// expect checks that a download succeeded, and which ranges were requested.
func (s *versions) expect(t *testing.T, name, digest string, err error, ranges ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(s.content)); digest != want {
		t.Errorf("the digest is %s, want %s", digest, want)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, s.content) {
		t.Errorf("the file has %d bytes, %v, want %d", len(got), err, len(s.content))
	}
	if fmt.Sprint(s.ranges) != fmt.Sprint(ranges) {
		t.Errorf("ranges %q were requested, want %q", s.ranges, ranges)
	}
}

func newVersions() *versions {
	return &versions{content: bytes.Repeat([]byte("0123456789abcdef"), 4096), tag: `"v1"`}
}

func TestFileContinuesAfterCutBody(t *testing.T) {
	name, s := filepath.Join(t.TempDir(), "a"), newVersions()
	s.failures = []func(http.ResponseWriter){s.cut(1000), refuse(http.StatusServiceUnavailable)}
	digest, err := s.fetch(t, name)
	s.expect(t, name, digest, err, "", "bytes=1000-", "bytes=1000-")
}

func TestFileContinuesEarlierCall(t *testing.T) {
	name, s := filepath.Join(t.TempDir(), "a"), newVersions()
	s.failures = []func(http.ResponseWriter){s.cut(1000), refuse(http.StatusNotFound)}
	var refused *httpstatus.Error
	if _, err := s.fetch(t, name); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Fatalf("the error is %v, want one of status 404", err)
	}
	s.ranges = nil
	digest, err := s.fetch(t, name)
	s.expect(t, name, digest, err, "bytes=1000-")
}

func TestFileBeginsAnew(t *testing.T) {
	t.Run("without an ETag", func(t *testing.T) {
		name, s := filepath.Join(t.TempDir(), "a"), newVersions()
		s.tag = ""
		s.failures = []func(http.ResponseWriter){s.cut(1000)}
		digest, err := s.fetch(t, name)
		s.expect(t, name, digest, err, "", "")
	})
	t.Run("of another version", func(t *testing.T) {
		name, s := filepath.Join(t.TempDir(), "a"), newVersions()
		s.failures = []func(http.ResponseWriter){s.cut(1000), refuse(http.StatusNotFound)}
		if _, err := s.fetch(t, name); err == nil {
			t.Fatal("a file that is missing was downloaded")
		}
		s.content, s.tag, s.ranges = []byte(strings.Repeat("other", 2000)), `"v2"`, nil
		digest, err := s.fetch(t, name)
		s.expect(t, name, digest, err, "bytes=1000-")
	})
	t.Run("where a range is refused", func(t *testing.T) {
		name, s := filepath.Join(t.TempDir(), "a"), newVersions()
		s.failures = []func(http.ResponseWriter){s.cut(1000), refuse(http.StatusRequestedRangeNotSatisfiable)}
		digest, err := s.fetch(t, name)
		s.expect(t, name, digest, err, "", "bytes=1000-", "")
	})
}

func TestFileComparesDigest(t *testing.T) {
	for _, field := range []string{"Repr-Digest", "Digest", "X-Amz-Checksum-Sha256"} {
		dir, s := t.TempDir(), newVersions()
		name, format := filepath.Join(dir, "a"), map[string]string{"Repr-Digest": "sha-256=:%s:", "Digest": "SHA-256=%s",
			"X-Amz-Checksum-Sha256": "%s"}[field]
		right := sha256.Sum256(s.content)
		s.header = map[string]string{field: fmt.Sprintf(format, base64.StdEncoding.EncodeToString(right[:]))}
		digest, err := s.fetch(t, name)
		s.expect(t, name, digest, err, "")

		wrong := sha256.Sum256([]byte("other"))
		s.header = map[string]string{field: fmt.Sprintf(format, base64.StdEncoding.EncodeToString(wrong[:]))}
		if err := Discard(name); err != nil {
			t.Fatal(err)
		}
		if _, err = s.fetch(t, name); err == nil || !strings.Contains(err.Error(), "download it again") {
			t.Errorf("%s of other bytes: the error is %v", field, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s of other bytes: %v is left, %v", field, entries, err)
		}
	}
}

func TestFileGivesUp(t *testing.T) {
	for status, attempts := range map[int]int{http.StatusUnauthorized: 1, http.StatusNotFound: 1,
		http.StatusForbidden: tries, http.StatusBadGateway: tries} {
		dir, s := t.TempDir(), newVersions()
		for range 2 * tries {
			s.failures = append(s.failures, refuse(status))
		}
		_, err := s.fetch(t, filepath.Join(dir, "a"))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error of status %d is %v", status, err)
		}
		if len(s.ranges) != attempts {
			t.Errorf("status %d was requested %d times, want %d", status, len(s.ranges), attempts)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("after status %d, %v is left, %v", status, entries, err)
		}
	}
}

// tries is how many requests in a row may bring nothing in these tests.
const tries = 5

// silentServer accepts requests and never answers.
type silentServer struct{ requests int }

// RoundTrip implements http.RoundTripper.
func (s *silentServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestFileGivesUpASilentServer(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	synctest.Test(t, func(t *testing.T) {
		s, began := &silentServer{}, time.Now()
		c := Client{HTTP: &http.Client{Transport: s}, Tries: tries, Report: func(message string) { t.Log(message) }}
		_, err := c.File(t.Context(), Source{URL: "http://server/signed?secret"}, name)
		if !errors.Is(err, stall.Err) || strings.Contains(err.Error(), "secret") {
			t.Errorf("File = %v, want %v", err, stall.Err)
		}
		least, most := tries*stall.Limit+7500*time.Millisecond, tries*stall.Limit+15*time.Second
		if took := time.Since(began); s.requests != tries || took < least || took > most {
			t.Errorf("%d requests took %v, want %d in %v to %v", s.requests, took, tries, least, most)
		}
	})
}
